"""Blocks of a model: its operations, cut where few bytes pass from one part to another.

Operations are laid out in an executable order, and blocks are ranges of it, so that blocks depend
on each other without cycles. The order is cut at the tensors that separate the model. A part with
branches is laid out branch after branch; where nothing separates a large part, it is cut where the
fewest bytes cross. Then small neighbours are joined until a block is worth a segment's launch.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from crosschip.ir import Array, Model, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.costs.block_signature import signature_of
from crosschip.runtime.costs.workload import Workload, nbytes_of, workload_of
from crosschip.runtime.placement.runs import fewest_runs
from crosschip.runtime.placement.segments import topological_order

LEAST_SECONDS = 1e-4
"""The least nominal duration of a block: several launches of a segment take less."""

MOST_BLOCKS = 64
"""The least nominal duration of a block is at least that of the model divided by this."""

LARGE = 8
"""The number of least durations from which a part that no tensor separates is cut."""

_MOST_CROSSING = 64
"""The maximum number of tensors that cross the cut of a part that no tensor separates."""

_TIE = 1.01
"""Cuts that as few bytes cross, up to this factor, are made together, as in repeated layers."""

_LAYOUTS = 3
"""The maximum number of times that branches are laid out, for branches within branches."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some operations of a model that one device runs.

    Attributes:
        operations: their indices in the model, ascending.
        inputs: the operands that the block reads, without constants.
        outputs: the operands that it computes and that other blocks read or the model outputs.
        signature: a text that is equal for blocks that take a device the same time.
        work: the work of a run.
        constant_bytes: the bytes of the constants that it reads.
        input_bytes: the bytes of `inputs`.
        output_bytes: the bytes of `outputs`.
    """

    operations: tuple[int, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    signature: str
    work: Workload
    constant_bytes: int
    input_bytes: int
    output_bytes: int


def blocks_of(
    model: Model,
    keys: Sequence[Hashable] = (),
    groups: Sequence[Sequence[int]] = (),
    *,
    form: str = "static",
) -> list[Block]:
    """Cut a model into blocks, in an executable order.

    Args:
        model: the model, with static sizes as far as they are known.
        keys: a value for each operation; operations of one block have equal values. Empty if all
            are equal.
        groups: disjoint sets of operations, by index, to keep in one block if possible.
        form: the form in which devices get the model, a part of the signatures.
    """
    if not model.operations:
        return []
    graph = _Graph(model)
    return [_block(graph, members, form) for members in _cut(graph, keys, groups)]


class _Graph:
    """The operations of a model and the tensors between them, by index.

    Attributes:
        model: the model.
        count: the number of operations.
        work: the work of each operation.
        seconds: the nominal duration of each operation.
        heavy: whether each operation has multiply-adds.
        sources, readers: the two operations of each edge.
        tensors: the tensor of each edge.
        tensor_sources: the operation that computes each tensor.
        tensor_bytes: the size of each tensor.
        before: the operations whose outputs each operation reads.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.count = len(model.operations)
        self.sizes: dict[Operand, int] = {}
        self.work: list[Workload] = []
        self.before: list[list[int]] = []
        number: dict[Operand, int] = {}
        tensor_sources: list[int] = []
        tensor_bytes: list[int] = []
        edges: list[tuple[int, int]] = []
        for index, operation in enumerate(model.operations):
            nbytes, before = 0, []
            for operand in operation.inputs:
                if operand is None:
                    continue
                nbytes += self.nbytes(operand)
                tensor = number.get(operand)
                if tensor is not None:
                    before.append(tensor_sources[tensor])
                    edges.append((tensor, index))
            for operand in operation.outputs:
                number[operand] = len(number)
                tensor_sources.append(index)
                size = self.nbytes(operand)
                tensor_bytes.append(size)
                nbytes += size
            self.before.append(before)
            self.work.append(workload_of(operation, nbytes))
        self.seconds = np.array([work.nominal_seconds for work in self.work])
        self.heavy = np.array([work.multiply_adds > 0 for work in self.work])
        self.tensors, self.readers = np.array(edges, np.intp).reshape(-1, 2).T
        self.tensor_sources = np.array(tensor_sources, np.intp)
        self.tensor_bytes = np.array(tensor_bytes, np.float64)

    def nbytes(self, operand: Operand) -> int:
        """Return the bytes of an operand."""
        size = self.sizes.get(operand)
        if size is None:
            size = self.sizes[operand] = nbytes_of(operand.type)
        return size

    def crossings(self, order: Array) -> tuple[Array, Array]:
        """Return the number and the bytes of the tensors that cross each position of an order.

        Position `i` is between the operations `order[i]` and `order[i + 1]`.
        """
        positions = np.empty(self.count, np.intp)
        positions[order] = np.arange(self.count)
        first = positions[self.tensor_sources]
        last = first.copy()
        np.maximum.at(last, self.tensors, positions[self.readers])
        number, nbytes = np.zeros(self.count + 1), np.zeros(self.count + 1)
        np.add.at(number, first, 1)
        np.add.at(number, last, -1)
        np.add.at(nbytes, first, self.tensor_bytes)
        np.add.at(nbytes, last, -self.tensor_bytes)
        return np.cumsum(number[:-1]), np.cumsum(nbytes[:-1])

    def successors(self) -> list[list[int]]:
        """Return the operations that read outputs of each operation, without duplicates."""
        after: list[list[int]] = [[] for _ in range(self.count)]
        for index, before in enumerate(self.before):
            for source in set(before):
                after[source].append(index)
        return after


class _Layout:
    """An executable order of the operations, and where it may be cut.

    Attributes:
        graph: the operations.
        order: the operations in order.
        keys: the key of each position's operation, as a number.
        joined: whether each position is inside a group, where no cut is allowed.
        least: the least nominal duration of a block.
    """

    def __init__(
        self, graph: _Graph, keys: Sequence[Hashable], groups: Sequence[Sequence[int]]
    ) -> None:
        self.graph = graph
        count = graph.count
        numbers: dict[Hashable, int] = {}
        colours = [numbers.setdefault(key, len(numbers)) for key in keys] or [0] * count
        units: Sequence[Sequence[int]] = [(index,) for index in range(count)]
        if groups or len(numbers) > 1:
            units = _order_units(graph.successors(), colours, groups)
        self.order = np.array([index for unit in units for index in unit], np.intp)
        self.keys = np.array(colours)[self.order]
        self.joined = np.array([False] * count)
        end = 0
        for unit in units:
            self.joined[end : end + len(unit) - 1] = True
            end += len(unit)
        self.least = max(LEAST_SECONDS, float(graph.seconds.sum()) / MOST_BLOCKS)
        self.measure()

    def measure(self) -> None:
        """Compute what crosses each position, and the work before it, for the present order."""
        self.number, self.nbytes = self.graph.crossings(self.order)
        self.done = np.concatenate([[0.0], np.cumsum(self.graph.seconds[self.order])])

    def seconds(self, start: int, end: int) -> float:
        """Return the nominal duration of a range of the order."""
        return float(self.done[end] - self.done[start])

    def forced_cuts(self) -> Array:
        """Return the positions between operations with different keys."""
        return np.flatnonzero(self.keys[:-1] != self.keys[1:])

    def separators(self) -> Array:
        """Return the positions that at most one tensor crosses."""
        allowed = (self.number[:-1] <= 1) & ~self.joined[:-1]
        return np.flatnonzero(allowed)

    def lay_out_branches(self, start: int, end: int) -> list[int]:
        """Put the large branches of a range one after the other; return where each one ends."""
        members = self.order[start:end].tolist()
        for last in (len(members), len(members) - 1):
            if last < len(members) and self.joined[start + last - 1]:
                continue
            branches = self._branches(members[:last], start)
            large = [b for b in branches if self.graph.seconds[b].sum() >= self.least]
            if len(large) > 1:
                break
        else:
            return []
        ends, position = [], start
        in_branches = {index for branch in large for index in branch}
        old = {index: start + i for i, index in enumerate(members)}
        rest = [index for index in members if index not in in_branches]
        ordered = [index for branch in large for index in branch] + rest
        for branch in large:
            position += len(branch)
            ends.append(position - 1)
        source = np.array([old[index] for index in ordered])
        self.order[start:end] = ordered
        self.joined[start:end] = self.joined[source]
        self.keys[start:end] = self.keys[source]
        return ends

    def _branches(self, members: Sequence[int], start: int) -> list[list[int]]:
        """Return the sets of connected operations among some, each in order."""
        root = {index: index for index in members}

        def find(index: int) -> int:
            while root[index] != index:
                root[index] = root[root[index]]
                index = root[index]
            return index

        for position, index in enumerate(members):
            for source in self.graph.before[index]:
                if source in root:
                    root[find(source)] = find(index)
            if position and self.joined[start + position - 1]:
                root[find(members[position - 1])] = find(index)
        branches: dict[int, list[int]] = {}
        for index in members:
            branches.setdefault(find(index), []).append(index)
        return list(branches.values())

    def cuts_within(self, start: int, end: int) -> Iterator[int]:
        """Return positions in a large range that few bytes cross, by repeated cuts."""
        ranges = [(start, end)]
        while ranges:
            start, end = ranges.pop()
            if end - start < 2 or self.seconds(start, end) < LARGE * self.least:
                continue
            # Position i has the operations up to and with i before it.
            before = self.done[start + 1 : end] - self.done[start]
            after = self.done[end] - self.done[start + 1 : end]
            inside = slice(start, end - 1)
            allowed = (before >= self.least) & (after >= self.least) & ~self.joined[inside]
            candidates = start + np.flatnonzero(allowed & (self.number[inside] <= _MOST_CROSSING))
            if not candidates.size:
                continue
            nbytes = self.nbytes[candidates]
            cuts = candidates[nbytes <= nbytes.min() * _TIE].tolist()
            yield from cuts
            bounds = [start, *(cut + 1 for cut in cuts), end]
            ranges += pairwise(bounds)


def _order_units(
    readers: Sequence[Sequence[int]], colours: Sequence[int], groups: Sequence[Sequence[int]]
) -> Sequence[Sequence[int]]:
    """Return groups and single operations in an executable order with few changes of key."""
    units = topological_order(readers, groups) if groups else [[i] for i in range(len(readers))]
    unit_of = {index: number for number, unit in enumerate(units) for index in unit}
    unit_readers = [
        sorted({unit_of[reader] for index in unit for reader in readers[index]} - {number})
        for number, unit in enumerate(units)
    ]
    runs = fewest_runs([str(colours[unit[0]]) for unit in units], unit_readers)
    return [units[number] for run in runs for number in run]


def _cut(
    graph: _Graph, keys: Sequence[Hashable], groups: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return the operations of each block, ascending."""
    layout = _Layout(graph, keys, groups)
    cuts = {*layout.forced_cuts().tolist(), *layout.separators().tolist()}
    for _ in range(_LAYOUTS):
        added: list[int] = []
        for start, end in _ranges(cuts, graph.count):
            if end - start > 2 and layout.seconds(start, end) >= 2 * layout.least:
                added += layout.lay_out_branches(start, end)
        if not added:
            break
        layout.measure()
        cuts.update(added)
        for start, end in _ranges(cuts, graph.count):
            cuts.update(layout.cuts_within(start, end))
    for start, end in _ranges(cuts, graph.count):
        cuts.update(layout.cuts_within(start, end))
    return [
        sorted(layout.order[s:e].tolist()) for s, e in _join(layout, _ranges(cuts, graph.count))
    ]


def _ranges(cuts: set[int], count: int) -> list[tuple[int, int]]:
    """Return the ranges of positions between cuts."""
    bounds = [0, *(cut + 1 for cut in sorted(cuts) if cut + 1 < count), count]
    return list(pairwise(bounds))


def _join(layout: _Layout, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join neighbours with the same key until each has the least duration, if possible.

    The first operation after multiply-adds stays with these, as engines fuse it with them, and so
    do further ones if they are small.
    """
    heavy = np.concatenate([[0], np.cumsum(layout.graph.heavy[layout.order])])
    joined: list[tuple[int, int]] = []
    follows_heavy, tail = False, 0.0  # the duration of light ranges at the end of the last block
    for start, end in ranges:
        seconds, light = layout.seconds(start, end), heavy[end] == heavy[start]
        same = bool(joined) and layout.keys[start] == layout.keys[start - 1]
        small = same and layout.seconds(*joined[-1]) < layout.least
        if same and (small or (light and (follows_heavy or tail + seconds < layout.least))):
            joined[-1] = joined[-1][0], end
            tail = tail + seconds if light else 0.0
        else:
            joined.append((start, end))
            tail = 0.0
        follows_heavy = not light
    if len(joined) > 1 and layout.seconds(*joined[-1]) < layout.least:
        (start, middle), (_, end) = joined[-2:]
        if layout.keys[middle] == layout.keys[middle - 1]:
            joined[-2:] = [(start, end)]
    return joined


def _block(graph: _Graph, members: Sequence[int], form: str) -> Block:
    """Return the block of some operations."""
    model = graph.model
    operations = [model.operations[index] for index in members]
    written = {output for operation in operations for output in operation.outputs}
    inside: dict[Operand, int] = {}
    constants: dict[Operand, None] = {}
    for operation in operations:
        for operand in operation.inputs:
            if operand is None:
                continue
            if operand.content is not None:
                constants[operand] = None
            else:
                inside[operand] = inside.get(operand, 0) + 1
    inputs = tuple([operand for operand in inside if operand not in written])
    outputs = tuple(
        [
            output
            for operation in operations
            for output in operation.outputs
            if model.uses.get(output, 0) > inside.get(output, 0)
        ]
    )
    return Block(
        tuple(members),
        inputs,
        outputs,
        signature_of(operations, inputs, outputs, form),
        Workload.total([graph.work[index] for index in members]),
        sum(map(graph.nbytes, constants)),
        sum(map(graph.nbytes, inputs)),
        sum(map(graph.nbytes, outputs)),
    )
