"""Operators that join and split tensors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape, unknown
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.definition.kinds import Layout
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator, operator_named
from crosschip.ops.definition.shape_values import Sizes, fail_if, shape_value_by_elements
from crosschip.ops.definition.shapes import normalize_axis, unify
from crosschip.ops.definition.slots import (
    ComputedParameter,
    integer,
    integers,
    optional_integer,
    tensors,
)
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Less, NotEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.slicing import Slice


class _JoinBase(Operator):
    """Base class of operators that move the elements of several tensors of one element type."""

    __slots__ = ()
    moves = True
    parts = tensors(ALL_TYPES)
    infer_shape_value = shape_value_by_elements


@operator("CONCAT", core=True)
class Concat(_JoinBase):
    """The parts, concatenated along `axis`; their other sizes are equal.

    A negative axis counts from the last one. A part may be empty along the axis. Quantized parts
    give a quantized output if all have the same per-tensor quantization.
    """

    __slots__ = ()
    axis = integer()

    def infer_shape(self) -> Shape:
        shapes = [shape_of(operand) for operand in self.parts]
        first = shapes[0]
        axis = normalize_axis(self.axis, len(first))
        total: Dim = 0
        sizes = list(first)
        for shape in shapes:
            if len(shape) != len(first):
                raise ValueError(f"parts: one has {len(shape)} axes, another {len(first)}")
            for other in range(len(first)):
                if other != axis:
                    sizes[other] = unify(sizes[other], shape[other], "parts: sizes of two of them")
            total = shape[axis] + total
        sizes[axis] = total
        return tuple(sizes)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        rows = set(axes[: len(self.parts)])
        if len(rows) != 1:
            return None
        (axis,) = rows
        return None if axis == normalize_axis(self.axis, len(shape_of(self.parts[0]))) else axis

    def reference(self, parts: Sequence[Array]) -> Array:
        return np.concatenate(parts, self.axis)


@operator("STACK")
class Stack(_JoinBase):
    """The parts, which have one shape, stacked along a new axis.

    The new axis is `axis` of the output; a negative one counts from the output's end.
    """

    __slots__ = ()
    axis = integer(0)

    def infer_shape(self) -> Shape:
        shapes = [shape_of(operand) for operand in self.parts]
        if len({len(shape) for shape in shapes}) > 1:
            raise ValueError(f"parts: have {sorted({*map(len, shapes)})} axes, which differ")
        sizes = list(shapes[0])
        for shape in shapes[1:]:
            for axis, size in enumerate(shape):
                sizes[axis] = unify(sizes[axis], size, "parts: sizes of two of them")
        sizes.insert(normalize_axis(self.axis, len(sizes) + 1), len(shapes))
        return tuple(sizes)

    def reference(self, parts: Sequence[Array]) -> Array:
        return np.stack(parts, self.axis)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Concat, [b.add(Unsqueeze, p, (self.axis,)) for p in self.parts], self.axis)


@operator("SPLIT")
class Split(Layout):
    """Pieces of the input along `axis`, of the sizes in `split`.

    The sizes add up to that of the axis; a size may be 0. A negative axis counts from the last one.
    There is one output per size.
    """

    __slots__ = ()
    axis = integer()
    split = integers()

    def output_count(self) -> int:
        operand = self.operand("split")
        shape = operand.type.static_shape if operand else None
        if not shape:
            raise ValueError("split: must be a list of known length")
        if not shape[0]:
            raise ValueError("split: must list at least one size")
        return shape[0]

    def infer_shape(self) -> Sequence[Shape]:
        shape = list(shape_of(self.input))
        axis = normalize_axis(self.axis, len(shape))
        try:
            sizes: Sequence[Dim] = self.split
        except ComputedParameter:
            sizes = [unknown() for _ in range(self.output_count())]
        else:
            if not self.split:
                raise ValueError("split: must list at least one size")
            if any(size < 0 for size in self.split):
                raise ValueError(f"split: {list(self.split)} has a negative size")
            unify(shape[axis], sum(self.split), "split: its sum, and the size of the axis")
        return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return None if axes[0] == normalize_axis(self.axis, len(shape_of(self.input))) else axes[0]

    def reference(self, input: Array) -> Sequence[Array]:
        if min(self.split) < 0 or sum(self.split) != input.shape[self.axis]:
            raise ValueError(
                f"split: {list(self.split)} does not sum up to {input.shape[self.axis]}"
            )
        return np.split(input, np.cumsum(self.split)[:-1], self.axis)

    def decompose(self, b: Builder) -> Sequence[Operand]:
        return [
            b.add(Slice, self.input, (self.axis,), start, end)
            for start, end in pairwise(self._bounds(b))
        ]

    def _bounds(self, b: Builder) -> Sequence[Operand]:
        """Build the start of the first piece and the end of each piece, as lists of length 1."""
        sizes = Sizes(b, self.input)
        size = sizes.shape[normalize_axis(self.axis, len(sizes.shape))]
        first = b.constant(np.array([0]))
        try:
            ends = [b.constant(np.array([end])) for end in np.cumsum(self.split)]
        except ComputedParameter:
            return self._computed_bounds(b, first, sizes.computed(size))
        if not isinstance(size, int):
            differs = b.add(NotEqual, sizes.computed(size), ends[-1])
            first = fail_if(b, differs, first)
        return [first, *ends]

    def _computed_bounds(self, b: Builder, first: Operand, size: Operand) -> Sequence[Operand]:
        pieces = b.add(Cast, self.operand("split"), ElementType.INT64)
        total = b.add(operator_named("REDUCE_SUM"), pieces, (0,))
        differs = b.add(NotEqual, size, total)
        negative = b.add(Less, pieces, b.constant(np.array([0])))
        bounds = [fail_if(b, b.add(Concat, [differs, negative], 0), first)]
        for index in range(self.output_count()):
            piece = b.add(Slice, pieces, (0,), (index,), (index + 1,))
            bounds.append(b.add(Add, bounds[-1], piece))
        return bounds


@operator("UNSTACK")
class Unstack(Layout):
    """The entries of the input along `axis` as separate outputs without that axis.

    A negative axis counts from the last one. There are `num` outputs, the size of the axis; `num`
    may be omitted if that size is known.
    """

    __slots__ = ()
    axis = integer(0)
    num = optional_integer()

    def output_count(self) -> int:
        shape = self.input.type.shape
        size = None if shape is None else shape[normalize_axis(self.axis, len(shape))]
        if isinstance(size, int) and size < 1:
            raise ValueError(f"input: axis {self.axis} has nothing to take apart")
        if self.num is None and not isinstance(size, int):
            raise ValueError("num: must be given, since the size of the axis is not known")
        if self.num is not None and isinstance(size, int):
            unify(self.num, size, "num: it, and the size of the axis")
        count = self.num if self.num is not None else size
        if isinstance(count, int) and count < 1:
            raise ValueError(f"num: {count} is not positive")
        assert isinstance(count, int), "one of the two is known"
        return count

    def infer_shape(self) -> Sequence[Shape]:
        count, shape = self.output_count(), shape_of(self.input)
        axis = normalize_axis(self.axis, len(shape))
        return [(*shape[:axis], *shape[axis + 1 :])] * count

    def reference(self, input: Array) -> Sequence[Array]:
        if self.num not in (None, input.shape[self.axis]):
            raise ValueError(f"num: {self.num}, but the axis has size {input.shape[self.axis]}")
        return list(np.moveaxis(input, self.axis, 0))

    def decompose(self, b: Builder) -> Sequence[Operand]:
        sizes = Sizes(b, self.input)
        size = sizes.shape[normalize_axis(self.axis, len(sizes.shape))]
        indices = [b.constant(np.array(index)) for index in range(self.output_count())]
        if not isinstance(size, int):
            count = b.constant(np.array([len(indices)]))
            differs = b.add(NotEqual, sizes.computed(size), count)
            indices[0] = fail_if(b, differs, indices[0])
        return [b.add(operator_named("GATHER"), self.input, index, self.axis) for index in indices]


@operator("MESHGRID")
class Meshgrid(Operator):
    """The coordinates of a grid: output `i` holds the elements of part `i` along axis `i`.

    The parts are lists of lengths `d0 … dn`, and all outputs have the shape `[d0, …, dn]`:
    `output_i[j0, …, jn] = part_i[ji]`.
    """

    __slots__ = ()
    moves = True
    parts = tensors(ALL_TYPES)

    def output_count(self) -> int:
        return len(self.parts)

    def infer_shape(self) -> Sequence[Shape]:
        shapes = [shape_of(part) for part in self.parts]
        if any(len(shape) != 1 for shape in shapes):
            raise ValueError(f"parts: have {[*map(len, shapes)]} axes, but must have 1 each")
        return [tuple(size for (size,) in shapes)] * len(shapes)

    def reference(self, parts: Sequence[Array]) -> Sequence[Array]:
        return list(np.meshgrid(*parts, indexing="ij"))

    def decompose(self, b: Builder) -> Sequence[Operand]:
        shape = b.add(Concat, [b.add(ShapeOf, part) for part in self.parts], 0)
        rank = len(self.parts)
        shapes = [tuple(-1 if i == axis else 1 for i in range(rank)) for axis in range(rank)]
        return [
            b.add(Expand, b.add(Reshape, part, part_shape), shape)
            for part, part_shape in zip(self.parts, shapes, strict=True)
        ]
