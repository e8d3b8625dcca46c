"""Repeated blocks of a model: consecutive stretches of operations that are alike."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crosschip.ir.model import Operand, Operation

MIN_SAVING = 4
"""The least number of operations that a repeat hides."""

_LONGEST_PERIOD, _MOST_STARTS = 2000, 200
_OUTSIDE = -1
"""The position of a value that no operation of the sequence outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """Blocks of operations that are alike and follow one another in a model's order.

    Attributes:
        items: the operations of the first block and its repeats.
        blocks: the operations of each block; those at the same position are alike.
        chained: whether each block reads results of the block before it.
    """

    items: Sequence[Item]
    blocks: Sequence[Sequence[Operation]]
    chained: bool


Item = Operation | Repeat


def fold(
    operations: Sequence[Operation],
    group_of: Callable[[Operation], Hashable],
    saving: int = MIN_SAVING,
    *,
    shapes: bool = True,
) -> list[Item]:
    """Return operations with repeated blocks in place of the operations in them.

    Two blocks are alike if their operators, their groups, the element types and shapes of all
    values, and their edges are the same; the contents of constants may differ.

    Args:
        operations: operations in topological order.
        group_of: returns the group of an operation, such as its device.
        saving: the least number of operations that a repeat hides.
        shapes: whether shapes are the same in blocks that are alike; otherwise the ranks are.
    """
    kinds = _numbers(_kind(operation, group_of(operation), shapes) for operation in operations)
    spans = _choose(operations, kinds, saving)
    items: list[Item] = []
    position = 0
    for span in spans:
        items += operations[position : span.start]
        blocks = [
            operations[first : first + span.period]
            for first in range(span.start, span.end, span.period)
        ]
        items.append(Repeat(fold(blocks[0], group_of, saving, shapes=shapes), blocks, span.chained))
        position = span.end
    return [*items, *operations[position:]]


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of `count` blocks of `period` operations.

    Attributes:
        start: the position of the first operation.
        period: the number of operations of a block.
        count: the number of blocks.
        chained: whether each block reads results of the block before it.
        entering: the number of values that a block reads from outside of it.
    """

    start: int
    period: int
    count: int
    chained: bool
    entering: int

    @property
    def end(self) -> int:
        return self.start + self.period * self.count

    @property
    def saving(self) -> int:
        return self.period * (self.count - 1)

    @property
    def score(self) -> float:
        """The saving, less for blocks that begin and end amid many values."""
        return self.saving / (1 + self.entering)


def _choose(
    operations: Sequence[Operation],
    kinds: np.ndarray[tuple[int], np.dtype[np.int64]],
    saving: int,
) -> list[_Span]:
    """Return spans that do not overlap, in order: those that save most are chosen first."""
    reads = _producers(operations)
    candidates = sorted(_candidates(kinds, saving))
    free = np.ones(len(operations), np.bool_)
    chosen: list[_Span] = []
    for _, period, start, length in candidates:
        spans = (
            _span(reads, first, period, (start + length - first) // period + 1)
            for first in range(start, start + min(period, length - period + 1, _MOST_STARTS))
            if free[first : first + 2 * period].all()
        )
        fitting = [
            span
            for span in spans
            if span is not None and span.saving >= saving and free[span.start : span.end].all()
        ]
        if fitting:
            best = max(fitting, key=lambda span: (span.score, -span.start))
            free[best.start : best.end] = False
            chosen.append(best)
    return sorted(chosen, key=lambda span: span.start)


def _numbers(kinds: Iterable[Hashable]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return a number for each kind, in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], np.int64)


def _kind(operation: Operation, group: Hashable, shapes: bool) -> Hashable:
    """Return what operations that are alike have in common, except for their edges."""
    if operation.bodies:
        return id(operation)
    inputs = tuple(
        None if o is None else (o.is_constant, *_type(o, shapes)) for o in operation.inputs
    )
    outputs = tuple(_type(output, shapes) for output in operation.outputs)
    return operation.type, group, inputs, outputs


def _type(operand: Operand, shapes: bool) -> tuple[Hashable, ...]:
    type_ = operand.type
    shape = type_.shape if shapes or type_.shape is None else len(type_.shape)
    return type_.element_type, shape, type_.quantization is None


def _candidates(
    kinds: np.ndarray[tuple[int], np.dtype[np.int64]], saving: int
) -> Iterator[tuple[int, int, int, int]]:
    """Return (-saving, period, start, length) of stretches that equal what follows a period later.

    `kinds[start:start + length]` equals `kinds[start + period:start + period + length]`.
    """
    for period in range(1, min(len(kinds) // 2, _LONGEST_PERIOD) + 1):
        equal = np.zeros(len(kinds) - period + 2, np.bool_)
        equal[1:-1] = kinds[:-period] == kinds[period:]
        changes = np.flatnonzero(equal[1:] != equal[:-1])
        starts, ends = changes[::2], changes[1::2]
        for index in np.flatnonzero(ends - starts >= max(period, saving)):
            start, length = int(starts[index]), int(ends[index] - starts[index])
            yield -(length // period * period), period, start, length


def _producers(operations: Sequence[Operation]) -> list[list[int]]:
    """Return the positions of the producers of each operation's inputs except for constants."""
    position = {output: i for i, operation in enumerate(operations) for output in operation.outputs}
    return [
        [position.get(o, _OUTSIDE) for o in operation.inputs if o is not None and not o.is_constant]
        for operation in operations
    ]


def _span(reads: Sequence[Sequence[int]], start: int, period: int, count: int) -> _Span | None:
    """Return the longest span of at most `count` blocks with the same edges; `None` below two."""
    head, second = (_edges(reads, start, period, number) for number in (0, 1))
    for (inside, at), (inside_second, at_second) in zip(head, second, strict=True):
        if inside != inside_second or (inside and at != at_second):
            return None
    alike = 2
    while alike < count and _edges(reads, start, period, alike) == second:
        alike += 1
    outer = {at for inside, at in second if not inside}
    return _Span(start, period, alike, bool(outer - {None}), len(outer))


def _edges(
    reads: Sequence[Sequence[int]], start: int, period: int, number: int
) -> list[tuple[bool, int | None]]:
    """Return the edges into each operation of a block.

    An edge is whether it comes from the block itself, and the producer's position relative to the
    block, or `None` if the producer precedes all blocks.
    """
    first = start + number * period
    return [
        (producer >= first, producer - first if producer >= start else None)
        for operation in reads[first : first + period]
        for producer in operation
    ]
