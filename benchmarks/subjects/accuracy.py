"""The difference of the outputs from Paddle's own.

The figure is the largest difference of any output element from Paddle's result for the same inputs,
divided by the largest absolute value of Paddle's outputs. Each model is compiled once on each
device, with the file's dynamic sizes, and run with a batch of 1 and of 4. The outputs are those of
Paddle 2.6.2 for `.pdmodel` and `.onnx`, of Paddle 3.3.1 for `.json`.
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
REQUIREMENT = f"each relative error is at most {LIMIT:g}"

_BATCHES = (1, 4)


@dataclass(frozen=True)
class Accuracy(Row):
    """One model file on every device."""

    network: Annotated[str, Column("network")]
    format: Annotated[str, Column("file")]
    differences: Annotated[Mapping[str, float], Column("{}", ".1e")]

    @property
    def met(self) -> bool:
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
