"""Operators that repeat, shift, reverse or mask parts of a tensor."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.types import ALL_TYPES, INDICES, MAX_RANK
from crosschip.ops.definition.kinds import Layout, shape_parameter
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, check_lengths, fail_if, reshape
from crosschip.ops.definition.shapes import normalize_axis, unify
from crosschip.ops.definition.slots import (
    ComputedParameter,
    flag,
    integer,
    integers,
    optional_integers,
    tensor,
)
from crosschip.ops.standard.arithmetic import Mod, Mul, Sub
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather, GatherND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Where


@operator("TILE")
class Tile(Layout):
    """The input, repeated `repeats[i]` times on each axis `i`.

    If there are fewer repeats than axes, the first axes are not repeated; if there are more, the
    input gets leading axes of size 1, as in NumPy. A repeat of 0 gives an empty output; a negative
    one is an error.
    """

    __slots__ = ()
    repeats = integers()

    def infer_shape(self) -> Shape:
        shape, repeats = shape_of(self.input), shape_parameter(self, "repeats")
        if any(isinstance(count, int) and count < 0 for count in repeats):
            raise ValueError(f"repeats: {list(repeats)} has a negative number")
        rank = max(len(shape), len(repeats))
        sizes = (1,) * (rank - len(shape)) + shape
        counts = (1,) * (rank - len(repeats)) + tuple(repeats)
        return tuple(size * count for size, count in zip(sizes, counts, strict=True))

    def reference(self, input: Array) -> Array:
        return np.tile(input, self.repeats)

    def decompose(self, b: Builder) -> Operand | None:
        """Reshape each axis to `[1, size]`, expand it to `[count, size]`, and merge both."""
        sizes = Sizes(b, self.input)
        rank = len(sizes.shape)
        try:
            repeats = self.repeats
        except ComputedParameter:
            return self._repeat_computed(b) if 2 * rank <= MAX_RANK else None
        input_sizes = (1,) * (len(repeats) - rank) + sizes.shape
        counts = (1,) * (rank - len(repeats)) + repeats
        axes: list[tuple[Dim, int, Dim]] = []
        for count, size in zip(counts, input_sizes, strict=True):
            axes += [(size, 1, size)] if count == 1 else [(1, count, count), (size, 1, size)]
        if len(axes) > MAX_RANK:
            return None
        split, expanded, merged = ([axis[field] for axis in axes] for field in range(3))
        repeated = b.add(Expand, reshape(b, self.input, sizes, sizes.shape, split), expanded)
        output_shape = [size * count for count, size in zip(counts, input_sizes, strict=True)]
        return reshape(b, repeated, sizes, merged, output_shape)

    def _repeat_computed(self, b: Builder) -> Operand | None:
        """Build the repetition with repeats that are computed at run time."""
        rank, operand = len(shape_of(self.input)), self.operand("repeats")
        if operand is None or operand.type.static_shape != (rank,):
            return None
        repeats = b.add(Cast, operand, ElementType.INT64)
        negative = b.add(Less, repeats, b.constant(np.zeros(1, np.int64)))
        repeats = fail_if(b, negative, repeats)
        ones = b.constant(np.ones((rank, 1), np.int64))
        pairs = b.add(Concat, [b.add(Reshape, repeats, (-1, 1)), ones], 1)
        split = b.add(Unsqueeze, self.input, range(0, 2 * rank, 2))
        repeated = b.add(Expand, split, b.add(Reshape, pairs, (-1,)))
        output_shape = b.add(Mul, b.add(ShapeOf, self.input), repeats)
        return b.add(Reshape, repeated, output_shape, allow_zero=True)


@operator("ROLL")
class Roll(Layout):
    """Circular shift of the elements by `shifts[i]` along each axis `axes[i]`.

    `output[(j + shift) mod size] = input[j]`. A negative axis counts from the last one, and an axis
    may occur several times. Without `axes`, the flattened input (C order) is shifted by the single
    shift.
    """

    __slots__ = ()
    shifts = integers()
    axes = optional_integers()

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        for axis in self.axes or ():
            normalize_axis(axis, len(shape), "axes")
        if len(self.shifts) != (1 if self.axes is None else len(self.axes)):
            raise ValueError(f"shifts: has {len(self.shifts)} numbers, but must have one an axis")
        return shape

    def reference(self, input: Array) -> Array:
        return input if self.axes == () else np.roll(input, self.shifts, self.axes)

    def decompose(self, b: Builder) -> Operand:
        if self.axes is None:
            rolled = self._roll(b, b.add(Reshape, self.input, (-1,)), self.shifts[0], 0)
            sizes = Sizes(b, self.input)
            return reshape(b, rolled, sizes, (), sizes.shape)
        result = self.input
        for shift, axis in zip(self.shifts, self.axes, strict=True):
            result = self._roll(b, result, shift, axis)
        return result

    @staticmethod
    def _roll(b: Builder, input: Operand, shift: int, axis: int) -> Operand:
        sizes = Sizes(b, input)
        size = sizes.computed(sizes.shape[axis])
        first, one, back = (b.constant(np.array([n])) for n in (0, 1, shift))
        source = b.add(Sub, b.add(Range, first, size, one), back)
        return b.add(Gather, input, b.add(Mod, source, size), axis)


@operator("REVERSE_SEQUENCE")
class ReverseSequence(Layout):
    """Reversal of the first `lengths[i]` entries on `time_axis` for each index `i` of `batch_axis`.

    The other entries stay. A length is at least 0 and at most the size of `time_axis`. A negative
    axis counts from the last one. Source: ONNX's ReverseSequence.
    """

    __slots__ = ()
    lengths = tensor(INDICES)
    time_axis = integer(0)
    batch_axis = integer(1)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        _, batch = self._axes(len(shape))
        lengths = self.lengths.type.shape
        if lengths is not None:
            if len(lengths) != 1:
                raise ValueError(f"lengths: has {len(lengths)} axes, not 1")
            unify(shape[batch], lengths[0], "lengths: the sizes of it and of batch_axis")
        return shape

    def reference(self, input: Array, lengths: Array) -> Array:
        if np.any(lengths < 0) or np.any(lengths > input.shape[self.time_axis]):
            raise ValueError(f"lengths: {lengths.tolist()} does not fit in time_axis")
        rows = np.moveaxis(input, (self.batch_axis, self.time_axis), (0, 1))
        reversed_ = rows.copy()
        for row, (target, length) in enumerate(zip(reversed_, lengths, strict=True)):
            target[:length] = rows[row, :length][::-1]
        return np.moveaxis(reversed_, (0, 1), (self.batch_axis, self.time_axis))

    def decompose(self, b: Builder) -> Operand:
        rank = len(shape_of(self.input))
        time, batch = self._axes(rank)
        perm = [batch, time, *(axis for axis in range(rank) if axis not in (batch, time))]
        rows = b.add(Transpose, self.input, perm)
        sizes = Sizes(b, rows)
        zero, one = b.constant(np.array([0])), b.constant(np.array([1]))
        positions = b.add(Range, zero, sizes.computed(sizes.shape[1]), one)
        lengths_int64 = b.add(Cast, self.lengths, ElementType.INT64)
        lengths = b.add(
            Reshape, check_lengths(b, lengths_int64, sizes.computed(sizes.shape[1])), (-1, 1)
        )
        mirrored = b.add(Sub, b.add(Sub, lengths, one), positions)
        source = b.add(Where, b.add(Less, positions, lengths), mirrored, positions)
        gathered = b.add(GatherND, rows, b.add(Unsqueeze, source, (2,)), 1)
        return b.add(Transpose, gathered, np.argsort(perm).tolist())

    def _axes(self, rank: int) -> tuple[int, int]:
        time = normalize_axis(self.time_axis, rank, "time_axis")
        batch = normalize_axis(self.batch_axis, rank, "batch_axis")
        if time == batch:
            raise ValueError(f"batch_axis: {self.batch_axis} is time_axis too")
        return time, batch


@operator("TRILU")
class Trilu(Operator):
    """Upper or lower triangle of the matrices in the input's last two axes.

    `output[…, i, j] = input[…, i, j]` where `j - i >= k` (`upper`) or `j - i <= k` (otherwise),
    else 0 or false. `k` may be beyond the matrix. Source: ONNX's Trilu.
    """

    __slots__ = ()
    input = tensor(ALL_TYPES)
    k = integer(0)
    upper = flag(True)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if len(shape) < 2:
            raise ValueError(f"input: has {len(shape)} axes, but must have 2 at least")
        return shape

    def reference(self, input: Array) -> Array:
        rows, columns = (np.arange(size) for size in input.shape[-2:])
        diagonal = columns - rows[:, None]
        mask = diagonal >= self.k if self.upper else diagonal <= self.k
        return np.where(mask, input, np.zeros((), input.dtype))

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        zero, one = b.constant(np.array([0])), b.constant(np.array([1]))
        rows, columns = (
            b.add(Cast, b.add(Range, zero, sizes.computed(size), one), ElementType.INT32)
            for size in sizes.shape[-2:]
        )
        diagonal = b.add(Sub, columns, b.add(Unsqueeze, rows, (1,)))
        limits = np.iinfo(np.int32)
        first = np.clip(self.k + (not self.upper), limits.min, limits.max)
        below = b.add(Less, diagonal, first.astype(np.int32))
        nothing = b.constant(np.zeros((), self.input.type.element_type.dtype))
        if self.upper:
            return b.add(Where, below, nothing, self.input)
        return b.add(Where, below, self.input, nothing)
