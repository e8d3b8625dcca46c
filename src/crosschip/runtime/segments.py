"""Cutting a placed model into segments.

A segment is a set of operations of one device that can run without a break: in some order of all
operations in which each comes after those it reads from, a segment is a run of one device. Fewest
segments, then, is an order with the fewest changes of device. Operations that a device reads in
different dialects are as those of different devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from crosschip.ir import Model, Operand, Operation
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.runs import fewest_runs


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a model that one device runs.

    Attributes:
        device: the device's name.
        model: the part, as a model of its own.
        inputs: the operands of the whole model that it reads, in the order of its inputs.
        outputs: the operands that it makes and others read, in the order of its outputs.
    """

    device: str
    model: Model
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]


def segments_of(
    model: Model, owner: Mapping[Operation, str], dialects: Mapping[Operation, str] | None = None
) -> tuple[Segment, ...]:
    """The model's operations as segments, in an order in which they can run.

    Args:
        model: what to cut.
        owner: the device of each operation.
        dialects: the word for how a device reads an operation, where there is one.
    """
    runs = cut(model, owner, dialects)
    made_in: dict[Operand, int] = {}
    shared = set(model.outputs.values())
    for index, run in enumerate(runs):
        for operation in run:
            for operand in operation.inputs:
                if operand is not None and made_in.get(operand, index) != index:
                    shared.add(operand)
            for operand in operation.outputs:
                made_in[operand] = index
    return tuple(
        _segment(f"{model.name}.{index}", owner[run[0]], run, shared)
        for index, run in enumerate(runs)
    )


def cut(
    model: Model, owner: Mapping[Operation, str], dialects: Mapping[Operation, str] | None = None
) -> list[list[Operation]]:
    """The operations in runs of one device and dialect each, as few as `fewest_runs` finds."""
    operations, words = model.operations, dialects or {}
    colours = [
        _colour(node, owner[operation], words.get(operation, ""))
        for node, operation in enumerate(operations)
    ]
    if len(set(colours)) == 1:
        return [list(operations)]
    index = {operation: node for node, operation in enumerate(operations)}
    readers: list[list[int]] = [[] for _ in operations]
    for node, operation in enumerate(operations):
        for producer in {model.producers.get(o) for o in operation.inputs if o is not None}:
            if producer is not None:
                readers[index[producer]].append(node)
    return [[operations[node] for node in run] for run in fewest_runs(colours, readers)]


def _colour(node: int, device: str, dialect: str) -> str:
    """The properties that are alike in a run; what the runtime itself runs stands alone."""
    return f"{device} {node}" if device == RUNTIME else f"{device} {dialect}"


def _segment(name: str, device: str, run: Sequence[Operation], shared: Set[Operand]) -> Segment:
    made = {operand for operation in run for operand in operation.outputs}
    read = dict.fromkeys(
        operand
        for operation in run
        for operand in operation.inputs
        if operand is not None and not operand.is_constant and operand not in made
    )
    outputs = [o for operation in run for o in operation.outputs if o in shared]
    model = Model(
        name,
        {f"input{i}": operand for i, operand in enumerate(read)},
        run,
        {f"output{i}": operand for i, operand in enumerate(outputs)},
    )
    return Segment(device, model, tuple(read), tuple(outputs))
