"""Operators that put tensors together, take them apart, or pick from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Dim, Shape, unknown
from crosschip.ir.types import ALL_TYPES, INDICES
from crosschip.ops.operator import Operator, UnknownRank, operator, shape_of
from crosschip.ops.shapes import axis_in, same
from crosschip.ops.slots import ComputedParameter, integer, integers, tensor, tensors


@operator("CONCAT")
class Concat(Operator):
    """The parts, one after the other along `axis`; their other sizes are equal."""

    __slots__ = ()
    parts = tensors(ALL_TYPES)
    axis = integer()

    def infer_shape(self) -> Shape:
        shapes = [shape_of(operand) for operand in self.parts]
        first = shapes[0]
        axis = axis_in(self.axis, len(first))
        total: Dim = 0
        sizes = list(first)
        for shape in shapes:
            if len(shape) != len(first):
                raise ValueError(f"parts: one has {len(shape)} axes, another {len(first)}")
            for other in range(len(first)):
                if other != axis:
                    sizes[other] = same(sizes[other], shape[other], "parts: sizes of two of them")
            total = shape[axis] + total
        sizes[axis] = total
        return tuple(sizes)

    def reference(self, parts: Sequence[Array], axis: int) -> Array:
        return np.concatenate(parts, axis)


@operator("SPLIT")
class Split(Operator):
    """Cuts the input along `axis` into pieces of the sizes that `split` lists."""

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)
    axis = integer()
    split = integers()

    def output_count(self) -> int:
        operand = self.operand("split")
        shape = operand.type.static_shape if operand else None
        if not shape:
            raise ValueError("split: must be a list of known length")
        return shape[0]

    def infer_shape(self) -> Sequence[Shape]:
        shape = list(shape_of(self.input))
        axis = axis_in(self.axis, len(shape))
        try:
            sizes: Sequence[Dim] = self.split
        except ComputedParameter:
            sizes = [unknown() for _ in range(self.output_count())]
        else:
            same(shape[axis], sum(self.split), "split: its sum, and the size of the axis")
        return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]

    def reference(self, input: Array, axis: int, split: Sequence[int]) -> Sequence[Array]:
        return np.split(input, np.cumsum(split)[:-1], axis)


@operator("GATHER")
class Gather(Operator):
    """The entries of `axis` that `indices` name; a negative index counts from the end.

    The output's shape is the input's with `axis` replaced by the shape of `indices`.
    """

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)
    indices = tensor(INDICES)
    axis = integer(0)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axis = axis_in(self.axis, len(shape))
        if self.indices.type.shape is None:
            raise UnknownRank
        return (*shape[:axis], *self.indices.type.shape, *shape[axis + 1 :])

    def reference(self, input: Array, indices: Array, axis: int) -> Array:
        return np.take(input, indices, axis)
