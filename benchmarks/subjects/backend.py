"""The number of the ONNX project's backend node tests that pass.

The cases whose inputs and outputs are numeric tensors, without training; each is written to a file,
loaded, compiled and run. Cases with random numbers are compared in type and shape only and count as
random. For comparison: of the same cases, onnxruntime 1.31.1 alone passes 1,449 unchanged, and
1,651 with the newest opset versions that it accepts; OpenVINO 2026.4.1 passes 1,473.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from tests.importers.onnx.backend_cases import cases, judge

from benchmarks.subject import Column, Row

DOCUMENT = "coverage"
FEWEST = {"reference": 1600, "reference,onnxruntime": 1651}
REQUIREMENT = "no test has wrong outputs; at least " + " and ".join(
    f"{count:,} pass on {name}" for name, count in FEWEST.items()
)


@dataclass(frozen=True)
class Backend(Row):
    """One list of devices."""

    devices: Annotated[str, Column("devices")]
    cases: Annotated[int, Column("cases")]
    right: Annotated[int, Column("right")]
    refused: Annotated[int, Column("refused")]
    random: Annotated[int, Column("random")]
    wrong: Annotated[int, Column("wrong")]

    @property
    def met(self) -> bool | None:
        if self.cases < len(cases()):
            return None
        return not self.wrong and self.right >= FEWEST[self.devices]


def measure(*, quick: bool) -> Iterator[Backend]:
    """Each list of devices; every case takes minutes, so `quick` takes some."""
    chosen = cases()[:: 20 if quick else 1]
    for devices in FEWEST:
        with TemporaryDirectory() as folder:
            found = Counter(judge(c, devices.split(","), Path(folder)).verdict for c in chosen)
        counts = (found[verdict] for verdict in ("right", "refused", "random", "wrong"))
        yield Backend(devices, len(chosen), *counts)
