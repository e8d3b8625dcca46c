"""Sequences of different lengths that one tensor holds, and the padded form of them.

Offsets are those of a level of detail (`lod`); all lists are of int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.arithmetic import Add, Max, Sub
from crosschip.ops.standard.comparison import GreaterEqual, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, Range, ShapeOf
from crosschip.ops.standard.indexing import Gather, GatherND
from crosschip.ops.standard.joining import Concat, Stack
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import And, Where
from crosschip.ops.standard.reduction import CumSum, ReduceMax, ReduceSum
from crosschip.ops.standard.slicing import Slice

_TO_END = 2**31 - 1


def size(op: Context, operand: Operand, axis: int = 0) -> Operand:
    """The size of an axis, without axes."""
    sizes = op.add(ShapeOf, operand, ElementType.INT64)
    place = axis % op.rank(operand)
    return op.add(Reshape, op.add(Slice, sizes, (0,), (place,), (place + 1,)), ())


def numbers_up_to(op: Context, count: Operand) -> Operand:
    """0, 1, 2, … below a count without axes."""
    return op.add(Range, np.int64(0), count, np.int64(1))


def starts(op: Context, offsets: Operand) -> Operand:
    """Where each sequence begins."""
    return op.add(Slice, offsets, (0,), (0,), (-1,))


def ends(op: Context, offsets: Operand) -> Operand:
    """Where each sequence has ended."""
    return op.add(Slice, offsets, (0,), (1,), (_TO_END,))


def lengths(op: Context, offsets: Operand) -> Operand:
    """How long each sequence is."""
    return op.add(Sub, ends(op, offsets), starts(op, offsets))


def offsets_of(op: Context, lengths: Operand) -> Operand:
    """The offsets of sequences of these lengths."""
    zero = op.constant(np.zeros(1, np.int64), "zero")
    return op.add(Concat, parts=[zero, op.add(CumSum, lengths, 0)], axis=0)


def total(op: Context, lengths: Operand) -> Operand:
    """How long sequences are together, without axes."""
    return op.add(ReduceSum, lengths, (0,), keepdim=False)


def sequence_of_rows(op: Context, offsets: Operand, rows: Operand) -> Operand:
    """The sequence that each row is in, -1 if none is."""
    low, high = (op.add(Unsqueeze, o, (0,)) for o in (starts(op, offsets), ends(op, offsets)))
    is_in = is_between(op, op.add(Unsqueeze, rows, (1,)), low, high)
    numbers = numbers_up_to(op, op.add(Sub, size(op, offsets), np.int64(1)))
    sequence_numbers = op.add(Where, is_in, numbers, np.int64(-1))
    return op.add(ReduceMax, sequence_numbers, (1,), keepdim=False)


def repeated(op: Context, lengths: Operand) -> tuple[Operand, Operand]:
    """For each row of sequences of these lengths its sequence, and its place in that."""
    rows = numbers_up_to(op, total(op, lengths))
    after = op.add(CumSum, lengths, 0)
    is_over = op.add(GreaterEqual, op.add(Unsqueeze, rows, (1,)), op.add(Unsqueeze, after, (0,)))
    owner = op.add(ReduceSum, op.add(Cast, is_over, ElementType.INT64), (1,), keepdim=False)
    first = op.add(Gather, op.add(Sub, after, lengths), owner, 0)
    return owner, op.add(Sub, rows, first)


def padded(
    op: Context, x: Operand, offsets: Operand, value: Operand, longest: int | Operand | None = None
) -> tuple[Operand, Operand]:
    """The sequences beside each other [n, longest, …], and whether a place is in a sequence.

    Args:
        op: the operator.
        x: what holds the sequences.
        offsets: of the sequences.
        value: what to fill up with; broadcasts to a row.
        longest: how long each is to be; as the longest of them, but at least 1, if not given.
    """
    long = lengths(op, offsets)
    if longest is None:
        longest = op.add(Max, op.add(ReduceMax, long, (0,), keepdim=False), np.int64(1))
    if isinstance(longest, int):
        places = op.constant(np.arange(longest, dtype=np.int64), "places")
    else:
        places = numbers_up_to(op, longest)
    is_inside = op.add(Less, places, op.add(Unsqueeze, long, (1,)))
    rows = op.add(Add, op.add(Unsqueeze, starts(op, offsets), (1,)), places)
    elements = picked(op, x, rows, is_inside)
    return op.add(Where, with_axes_of_row(op, is_inside, x), elements, value), is_inside


def picked(op: Context, x: Operand, rows: Operand, is_wanted: Operand) -> Operand:
    """Rows of a tensor; zeros where they are not wanted, as these may not be there."""
    one = op.constant(np.ones(1, np.int64), "one")
    row = op.add(Slice, op.add(ShapeOf, x, ElementType.INT64), (0,), (1,), (_TO_END,))
    zeros = np.zeros((), x.type.element_type.dtype)
    nothing = op.add(Fill, op.add(Concat, parts=[one, row], axis=0), zeros)
    more = op.add(Concat, parts=[x, nothing], axis=0)
    return op.add(Gather, more, op.add(Where, is_wanted, rows, size(op, x)), 0)


def unpadded(op: Context, x: Operand, lengths: Operand) -> Operand:
    """The sequences of [n, longest, …] one after the other."""
    owner, place = repeated(op, lengths)
    return op.add(GatherND, x, op.add(Stack, [owner, place], 1))


def is_between(op: Context, rows: Operand, low: Any, high: Any) -> Operand:
    """Tell of each row whether it is in `[low, high)`."""
    return op.add(And, op.add(GreaterEqual, rows, low), op.add(Less, rows, high))


def with_axes_of_row(op: Context, operand: Operand, x: Operand) -> Operand:
    """What there is one of a row, with an axis of size 1 behind it for each that a row has."""
    rank, more = op.rank(operand), op.rank(x) - 1
    return op.add(Unsqueeze, operand, tuple(range(rank, rank + more))) if more else operand
