"""Sequences of different lengths: concatenated with LoD offsets, or padded.

Offsets [n + 1] are those of a LoD level (`lod`), lengths are [n]; both are int64.
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

_END = 2**31 - 1


def size(op: Context, operand: Operand, axis: int = 0) -> Operand:
    """Return the size of an axis, a scalar."""
    sizes = op.add(ShapeOf, operand, ElementType.INT64)
    index = axis % op.rank(operand)
    return op.add(Reshape, op.add(Slice, sizes, (0,), (index,), (index + 1,)), ())


def arange(op: Context, count: Operand) -> Operand:
    """Return the integers from 0 up to a scalar count."""
    return op.add(Range, np.int64(0), count, np.int64(1))


def starts(op: Context, offsets: Operand) -> Operand:
    """Return the first row of each sequence."""
    return op.add(Slice, offsets, (0,), (0,), (-1,))


def ends(op: Context, offsets: Operand) -> Operand:
    """Return the row after the last of each sequence."""
    return op.add(Slice, offsets, (0,), (1,), (_END,))


def lengths(op: Context, offsets: Operand) -> Operand:
    """Return the length of each sequence."""
    return op.add(Sub, ends(op, offsets), starts(op, offsets))


def offsets_from_lengths(op: Context, lengths: Operand) -> Operand:
    """Return the offsets of sequences with these lengths."""
    zero = op.constant(np.zeros(1, np.int64), "zero")
    return op.add(Concat, parts=[zero, op.add(CumSum, lengths, 0)], axis=0)


def total_length(op: Context, lengths: Operand) -> Operand:
    """Return the sum of lengths, a scalar."""
    return op.add(ReduceSum, lengths, (0,), keepdim=False)


def row_sequences(op: Context, offsets: Operand, rows: Operand) -> Operand:
    """Return the index of the sequence of each row; -1 for a row in no sequence."""
    low, high = (op.add(Unsqueeze, o, (0,)) for o in (starts(op, offsets), ends(op, offsets)))
    is_inside = in_range(op, op.add(Unsqueeze, rows, (1,)), low, high)
    numbers = arange(op, op.add(Sub, size(op, offsets), np.int64(1)))
    sequence_numbers = op.add(Where, is_inside, numbers, np.int64(-1))
    return op.add(ReduceMax, sequence_numbers, (1,), keepdim=False)


def sequence_positions(op: Context, lengths: Operand) -> tuple[Operand, Operand]:
    """Return, for each row of sequences with these lengths, its sequence and its index in it."""
    rows = arange(op, total_length(op, lengths))
    stops = op.add(CumSum, lengths, 0)
    is_past = op.add(GreaterEqual, op.add(Unsqueeze, rows, (1,)), op.add(Unsqueeze, stops, (0,)))
    sequence = op.add(ReduceSum, op.add(Cast, is_past, ElementType.INT64), (1,), keepdim=False)
    first = op.add(Gather, op.add(Sub, stops, lengths), sequence, 0)
    return sequence, op.add(Sub, rows, first)


def pad_sequences(
    op: Context, x: Operand, offsets: Operand, value: Operand, longest: int | Operand | None = None
) -> tuple[Operand, Operand]:
    """Return the padded sequences [n, longest, …], and the mask [n, longest] of their elements.

    Args:
        op: the operator.
        x: the concatenated sequences.
        offsets: their offsets.
        value: the padding value; broadcasts to a row.
        longest: the padded length; by default the greatest length, but at least 1.
    """
    sequence_lengths = lengths(op, offsets)
    if longest is None:
        longest = op.add(Max, op.add(ReduceMax, sequence_lengths, (0,), keepdim=False), np.int64(1))
    if isinstance(longest, int):
        positions = op.constant(np.arange(longest, dtype=np.int64), "places")
    else:
        positions = arange(op, longest)
    is_inside = op.add(Less, positions, op.add(Unsqueeze, sequence_lengths, (1,)))
    rows = op.add(Add, op.add(Unsqueeze, starts(op, offsets), (1,)), positions)
    elements = gather_rows(op, x, rows, is_inside)
    return op.add(Where, expand_to_rows(op, is_inside, x), elements, value), is_inside


def gather_rows(op: Context, x: Operand, rows: Operand, mask: Operand) -> Operand:
    """Gather rows where the mask is true, else 0; there, `rows` may be out of range."""
    one = op.constant(np.ones(1, np.int64), "one")
    row = op.add(Slice, op.add(ShapeOf, x, ElementType.INT64), (0,), (1,), (_END,))
    zeros = np.zeros((), x.type.element_type.dtype)
    zero_row = op.add(Fill, op.add(Concat, parts=[one, row], axis=0), zeros)
    extended = op.add(Concat, parts=[x, zero_row], axis=0)
    return op.add(Gather, extended, op.add(Where, mask, rows, size(op, x)), 0)


def unpad_sequences(op: Context, x: Operand, lengths: Operand) -> Operand:
    """Concatenate padded sequences [n, longest, …]."""
    sequence, position = sequence_positions(op, lengths)
    return op.add(GatherND, x, op.add(Stack, [sequence, position], 1))


def in_range(op: Context, rows: Operand, low: Any, high: Any) -> Operand:
    """Return whether each row is in `[low, high)`."""
    return op.add(And, op.add(GreaterEqual, rows, low), op.add(Less, rows, high))


def expand_to_rows(op: Context, operand: Operand, x: Operand) -> Operand:
    """Append axes of size 1 to an operand with one element per row of `x`, to broadcast to `x`."""
    rank, row_rank = op.rank(operand), op.rank(x) - 1
    return op.add(Unsqueeze, operand, tuple(range(rank, rank + row_rank))) if row_rank else operand
