"""The difference of the outputs from Paddle's own.

The figure is the largest difference of any output element from what Paddle computes for the same
inputs, divided by the largest absolute value among Paddle's outputs. Each model is compiled once
on each device, with its sizes left open as the file has them, and run with a batch of 1 and one of
4. Paddle 2.6.2 made the outputs for `.pdmodel` and `.onnx`, Paddle 3.3.1 those for `.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import crosschip
from benchmarks.engines import available, difference
from benchmarks.models import ModelFile, model_files
from benchmarks.subject import Column, Row

DOCUMENT = "accuracy"
LIMIT = 1e-4
BAR = f"at most {LIMIT:g}"

_BATCHES = (1, 4)


@dataclass(frozen=True)
class Accuracy(Row):
    """One model file on every device."""

    network: Annotated[str, Column("network")]
    format: Annotated[str, Column("file")]
    differences: Annotated[Mapping[str, float], Column("{}", ".1e")]

    @property
    def held(self) -> bool:
        return all(difference <= LIMIT for difference in self.differences.values())


def measure(*, quick: bool) -> Iterator[Accuracy]:
    """Each model file on each device."""
    for file in model_files(quick=quick):
        yield Accuracy(file.network, file.format, _differences(file))


def _differences(file: ModelFile) -> dict[str, float]:
    found = {}
    for device in available():
        with crosschip.compile(crosschip.load(file.path), [device], cache=False) as compiled:
            for batch in _BATCHES:
                oracle = file.oracle(batch)
                outputs = list(compiled.run(oracle.inputs).values())
                found[f"{device}, batch {batch}"] = difference(outputs, oracle.outputs)
    return found
