"""Cutting of a placed model into segments.

A segment is a set of operations of one device that are consecutive in some topological order of all
operations. An order with the fewest changes of device gives the fewest segments. Operations that a
device reads in different dialects count as operations of different devices.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from crosschip.ir import Model, Operand, Operation
from crosschip.ir.frozen import Frozen, set_field, setter
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.placement.runs import fewest_runs


class Segment(Frozen):
    """A part of a model that one device runs.

    Attributes:
        device: the device's name.
        name: the name in messages.
        operations: the operations, in an executable order.
        inputs: the operands that the segment reads, in the order of the model's inputs.
        outputs: the operands that it computes and others read, in the order of the model's outputs.
    """

    __slots__ = ("_model", "device", "inputs", "name", "operations", "outputs")

    device: str
    name: str
    operations: tuple[Operation, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    _model: Model | None

    def __init__(
        self,
        device: str,
        name: str,
        operations: tuple[Operation, ...],
        inputs: tuple[Operand, ...],
        outputs: tuple[Operand, ...],
    ) -> None:
        _set_device(self, device)
        _set_name(self, name)
        _set_operations(self, operations)
        _set_inputs(self, inputs)
        _set_outputs(self, outputs)
        _set_model(self, None)

    @property
    def model(self) -> Model:
        """The segment as a model."""
        if self._model is None:
            inputs = {f"input{index}": operand for index, operand in enumerate(self.inputs)}
            outputs = {f"output{index}": operand for index, operand in enumerate(self.outputs)}
            set_field(self, "_model", Model(self.name, inputs, self.operations, outputs))
        assert self._model is not None, "set in the lines above"
        return self._model

    def __repr__(self) -> str:
        return f"<Segment {self.name}: {len(self.operations)} operations on {self.device}>"


_set_device = setter(Segment, "device")
_set_name = setter(Segment, "name")
_set_operations = setter(Segment, "operations")
_set_inputs = setter(Segment, "inputs")
_set_outputs = setter(Segment, "outputs")
_set_model = setter(Segment, "_model")


def segments_of(
    model: Model,
    assigned_devices: Sequence[str],
    dialects: Sequence[str] = (),
    groups: Sequence[Sequence[int]] = (),
) -> tuple[Segment, ...]:
    """Cut a model's operations into segments, in an executable order.

    Args:
        model: the model; a segment's inputs that are model inputs keep their order.
        assigned_devices: the device of each operation.
        dialects: the dialect in which its device reads each operation; empty for none.
        groups: disjoint sets of operations, by index, to keep in one segment if possible.
    """
    runs = cut_segments(model, assigned_devices, dialects, groups)
    operations = model.operations
    segment_of: dict[Operand, int] = {}
    shared = set(model.outputs.values())
    first, last = _order(model.inputs.values()), _order(model.outputs.values())
    inputs: list[tuple[Operand, ...]] = []
    for index, run in enumerate(runs):
        read: dict[Operand, None] = {}
        for node in run:
            operation = operations[node]
            for operand in operation.inputs:
                if operand is None or operand.content is not None:
                    continue
                maker = segment_of.get(operand)
                if maker != index:
                    read[operand] = None
                    if maker is not None:
                        shared.add(operand)
            for operand in operation.outputs:
                segment_of[operand] = index
        inputs.append(tuple(sorted(read, key=first)))
    return tuple(
        Segment(
            assigned_devices[run[0]],
            f"{model.name}.{index}",
            tuple([operations[node] for node in run]),
            inputs[index],
            tuple(sorted((o for n in run for o in operations[n].outputs if o in shared), key=last)),
        )
        for index, run in enumerate(runs)
    )


def _order(operands: Iterable[Operand]) -> Callable[[Operand], int]:
    """Return the index of an operand in a list; other operands sort after all of them."""
    locations = {operand: index for index, operand in enumerate(operands)}
    return lambda operand: locations.get(operand, len(locations))


def part_of(segment: Segment, operations: Sequence[Operation]) -> Model:
    """Return some of a segment's operations, in their order, as a model.

    Its outputs are operands that other operations read, outputs of the segment, and unread
    operands.
    """
    written = dict.fromkeys(output for operation in operations for output in operation.outputs)
    inside: dict[Operand, int] = {}
    for operation in operations:
        for operand in operation.inputs:
            if operand is not None and operand.content is None:
                inside[operand] = inside.get(operand, 0) + 1
    uses = segment.model.uses
    read = [operand for operand in inside if operand not in written]
    shown = [o for o in written if o not in inside or uses.get(o, 0) > inside[o]]
    return Model(
        f"{segment.name}.part",
        {f"input{index}": operand for index, operand in enumerate(read)},
        operations,
        {f"output{index}": operand for index, operand in enumerate(shown)},
    )


def cut_segments(
    model: Model,
    assigned_devices: Sequence[str],
    dialects: Sequence[str] = (),
    groups: Sequence[Sequence[int]] = (),
) -> Sequence[Sequence[int]]:
    """Return the indices of operations in as few runs of one device and dialect as possible."""
    colours = _colours(assigned_devices, dialects)
    if not colours:
        return []
    if colours.count(colours[0]) == len(colours):
        return [range(len(colours))]
    readers = _readers(model)
    if not groups:
        return fewest_runs(colours, readers)
    units = topological_order(readers, groups)
    unit_of = {node: number for number, unit in enumerate(units) for node in unit}
    unit_readers = [
        sorted({unit_of[reader] for node in unit for reader in readers[node]} - {number})
        for number, unit in enumerate(units)
    ]
    runs = fewest_runs([colours[unit[0]] for unit in units], unit_readers)
    return [sorted(node for number in run for node in units[number]) for run in runs]


def _colours(assigned_devices: Sequence[str], dialects: Sequence[str]) -> Sequence[str]:
    """Return a label for each operation, equal within a run; the runtime's all differ."""
    colours = list(assigned_devices)
    if any(dialects):
        colours = [
            f"{device} {word}" for device, word in zip(assigned_devices, dialects, strict=True)
        ]
    if RUNTIME in assigned_devices:
        for node, device in enumerate(assigned_devices):
            if device == RUNTIME:
                colours[node] = f"{RUNTIME} {node}"
    return colours


def _readers(model: Model) -> Sequence[Sequence[int]]:
    """Return, for each operation, the indices of those that read its outputs."""
    count = len(model.operations)
    maker: dict[Operand, int] = {}
    pairs: list[int] = []  # integers, which the garbage collector does not visit
    for node, operation in enumerate(model.operations):
        for operand in operation.inputs:
            source = maker.get(operand) if operand is not None else None
            if source is not None:
                pairs.append(source * count + node)
        for operand in operation.outputs:
            maker[operand] = node
    pairs.sort()
    readers: list[tuple[int, ...]] = [()] * count
    first = 0
    while first < len(pairs):
        source = pairs[first] // count
        last = bisect_left(pairs, (source + 1) * count, first)
        nodes = [pair - source * count for pair in pairs[first:last]]
        readers[source] = tuple(nodes if len(nodes) == 1 else sorted(set(nodes)))
        first = last
    return readers


def topological_order(
    readers: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return tasks in a topological order, with each group as one task.

    A group is split if a path leads from a member through another task to a member. If only several
    groups together prevent an order, the largest is split.

    Args:
        readers: for each task, the tasks that wait for it.
        groups: disjoint sets of tasks.
    """
    remaining = [sorted(group) for group in groups if len(group) > 1]
    while True:
        order, stuck = _try_order(readers, remaining)
        if not stuck:
            return order
        remaining.remove(max((group for group in remaining if stuck.issuperset(group)), key=len))


def _try_order(
    readers: Sequence[Sequence[int]], groups: Sequence[Sequence[int]]
) -> tuple[list[list[int]], set[int]]:
    """Return a topological order of tasks and groups, and the tasks that are on or after cycles."""
    unit_of: list[list[int]] = [[task] for task in range(len(readers))]
    for group in groups:
        for task in group:
            unit_of[task] = list(group)
    waiting = {unit[0]: 0 for unit in unit_of}
    for task, others in enumerate(readers):
        for reader in others:
            if unit_of[reader][0] != unit_of[task][0]:
                waiting[unit_of[reader][0]] += 1
    ready = [first for first, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        unit = unit_of[heapq.heappop(ready)]
        order.append(unit)
        for task in unit:
            for reader in readers[task]:
                first = unit_of[reader][0]
                if first != unit[0]:
                    waiting[first] -= 1
                    if waiting[first] == 0:
                        heapq.heappush(ready, first)
    placed = {task for unit in order for task in unit}
    return order, set(range(len(readers))) - placed
