"""The operators that `crosschip bisect` names, and its number of runs.

The benchmark inserts wrong converters into `onnxruntime`: one, two or three operations whose result
is off by 1e-3 in one channel, or has a NaN; two that are wrong only in one program; two of which
the second cancels the error of the first; all operations with one value of a parameter. Some
devices return all intermediate results, some at most four outputs, and on some an error occurs only
if its result is not an output. The answer must name all wrong operations, and no others; if an
error occurs only inside a program, the operation that reads its result is part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from tests.bisect.planted import Fault, Planted
from tests.devices.transformers import bert

import crosschip
from benchmarks.models import model_file
from benchmarks.subject import Column, Row
from crosschip.bisect import find_failing_operators
from crosschip.ir import ElementType, Model, Operation
from crosschip.ops.standard.convolution import Conv2D

DOCUMENT = "coverage"
REQUIREMENT = (
    "exactly the wrong operations are named, in at most 4·log2(operations)+20 runs per operation"
)

_BASE = "onnxruntime"
_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "MobileNetV3-small": {"x": [1, 3, 224, 224]},
    "BERT": {"batch": 2, "sequence": 9},
    "PP-OCRv4 rec": {"x": [1, 3, 48, 160]},
    "ResNet50": {"x": [1, 3, 224, 224]},
}
_VISIBLE = "1 with no numbers"
"""What shows whatever reads it; a small error may be gone behind an activation."""

_HIDES = {"all": "", "four at once": "outputs", "not what errs": "fusions"}


@dataclass(frozen=True)
class Found(Row):
    """One search."""

    network: Annotated[str, Column("network")]
    operations: Annotated[int, Column("operations")]
    planted: Annotated[str, Column("planted")]
    shows: Annotated[str, Column("the device shows")]
    failing_operators: Annotated[int, Column("culprits")]
    missed: Annotated[int, Column("missed")]
    innocent: Annotated[int, Column("innocent")]
    runs: Annotated[int, Column("runs")]
    allowed: Annotated[float, Column("allowed", ".0f")]
    seconds: Annotated[float, Column("s", ".1f")]

    @property
    def met(self) -> bool:
        return not self.missed and not self.innocent and self.runs <= self.allowed


def measure(*, quick: bool) -> Iterator[Found]:
    """Each network with each sort of error; `quick` takes one network."""
    for network, shapes in list(_SHAPES.items())[: 1 if quick else None]:
        file = bert() if network == "BERT" else model_file(network, ".onnx").path
        model = crosschip.explain(file, [_BASE], shapes=shapes, cache=False).original
        for planted, faults in _planted(model):
            for shows, hides in _HIDES.items():
                if hides != "fusions" or planted == _VISIBLE:
                    yield _found(network, model, file, shapes, planted, faults, shows, hides)


def _found(
    network: str,
    model: Model,
    file: Any,
    shapes: Mapping[str, Any],
    planted: str,
    faults: Sequence[Fault],
    shows: str,
    hides: str,
) -> Found:
    device = Planted(base=_BASE, faults=faults, hides=hides)
    thorough = planted == "two that cancel"
    report = find_failing_operators(file, device, shapes=shapes, thorough=thorough)
    device.close()
    wanted = {group for fault in faults for group in _groups(model, fault)}
    named = {frozenset(culprit.names) for culprit in report.failing_operators}
    missed = wanted - named
    innocent = named - wanted
    if hides == "fusions":
        readers = {name for group in wanted for name in _readers(model, group)}
        seen = {group for group in wanted if any(group <= other for other in named)}
        missed = wanted - seen
        innocent = {g for g in named if not any(w <= g and g - w <= readers for w in wanted)}
    count = sum(map(len, wanted))
    allowed = count * (4 * math.log2(len(model.operations)) + 20)
    return Found(
        network, len(model.operations), planted, shows, count, len(missed), len(innocent),
        report.runs, allowed, report.seconds,
    )  # fmt: skip


def _planted(model: Model) -> Iterator[tuple[str, list[Fault]]]:
    """Sorts of errors, each of operations drawn with a seed of its own."""
    generator = np.random.default_rng(0)
    able = [o for o in model.operations if _can_be_spoiled(model, o)]

    def drawn(count: int) -> list[str]:
        return [able[i].name for i in generator.choice(len(able), count, replace=False)]

    for count in (1, 2, 3):
        yield f"{count} off by 1e-3", [Fault((name,)) for name in drawn(count)]
    for count in (1, 2):
        yield f"{count} with no numbers", [Fault((name,), "nan") for name in drawn(count)]
    yield "two only together", [Fault(tuple(drawn(2)))]
    pairs = [(a, b) for a in able for b in able if _adds_to(model, a, b)]
    if pairs:
        first, second = pairs[generator.integers(len(pairs))]
        cancelling = [Fault((first.name,), size=0.1), Fault((second.name,), size=-0.1)]
        yield "two that cancel", cancelling
    grouped = [o.group for o in able if isinstance(o, Conv2D) and o.group > 1]
    if grouped:
        value = max(grouped, key=lambda group: (grouped.count(group) == 1, group))
        yield f"convolutions in {value} groups", [Fault(type="CONV_2D", slot="group", value=value)]


def _can_be_spoiled(model: Model, operation: Operation) -> bool:
    first = operation.outputs[0]
    real = first.type.element_type is ElementType.FLOAT32 and bool(first.type.static_shape)
    return real and model.uses.get(first, 0) > 0


def _adds_to(model: Model, first: Operation, second: Operation) -> bool:
    """Tell whether an operation hands an error of another on as it is, and alone reads it."""
    made = first.outputs[0]
    return (
        second.type == "ADD"
        and second.fused.name == "NONE"  # type: ignore[attr-defined]  # it is an operator
        and made in second.inputs
        and model.uses[made] == 1
        and made.type.shape == second.outputs[0].type.shape
    )


def _groups(model: Model, fault: Fault) -> list[frozenset[str]]:
    """What is to be named of a fault."""
    if not fault.type:
        return [frozenset(fault.operations)]
    return [frozenset([o.name]) for o in model.operations if fault.spoils(o)]


def _readers(model: Model, group: frozenset[str]) -> set[str]:
    made = {out for o in model.operations if o.name in group for out in o.outputs}
    return {o.name for o in model.operations if made.intersection(filter(None, o.inputs))}
