"""Bases of operators that share slots and shape inference: elementwise, broadcast, layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Dim, Operand, Quantization, Shape
from crosschip.ir.types import ALL_TYPES, FLOATS, NUMBERS
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of, shape_value_of
from crosschip.ops.definition.shape_values import shape_value_by_elements
from crosschip.ops.definition.shapes import broadcast, unknown_sizes
from crosschip.ops.definition.slots import ComputedParameter, fuse, tensor


def number(value: float, like: Operand) -> Array:
    """One number of the element type of an operand; of unsigned integers, -1 is the greatest."""
    return np.array(value).astype(like.type.element_type.dtype)


def aligned_row_axis(operation: Operator, axes: Sequence[int | None]) -> int | None:
    """`Operator.row_axis` of what computes element by element, shapes being aligned at their ends.

    What has no rows must be alike for all: of size 1 at the axis of rows, or without it.
    """
    axis_of = dict(zip(operation.inputs, axes, strict=True))
    tensors = [
        (len(shape_of(operand)), shape_of(operand), axis_of[operand])
        for slot, operand in operation.filled()
        if not slot.parameter
    ]
    distances = {rank - axis for rank, _, axis in tensors if axis is not None}
    if len(distances) != 1:
        return None
    (distance,) = distances
    for rank, shape, axis in tensors:
        if axis is None and distance <= rank and shape[rank - distance] != 1:
            return None
    return max(rank for rank, _, _ in tensors) - distance


class Elementwise(Operator):
    """Base of operators whose output has the shape and element type of their first input."""

    __slots__ = ()

    def infer_shape(self) -> Shape:
        return shape_of(self._first())


class Broadcast(Operator):
    """Base of operators on two tensors of one element type, broadcast as NumPy does.

    Shapes are aligned at their last axes; an axis of size 1, or one that is missing, is repeated.
    """

    __slots__ = ()
    input0 = tensor(NUMBERS)
    input1 = tensor(NUMBERS, like="input0")
    row_axis = aligned_row_axis

    def infer_shape(self) -> Shape:
        return broadcast(shape_of(self.input0), shape_of(self.input1))


class Binary(Broadcast):
    """Base of arithmetic on two tensors; the activation `fuse_code` is applied to the result."""

    __slots__ = ()
    fuse_code = fuse()


class Unary(Elementwise):
    """Base of functions of one real."""

    __slots__ = ()
    input = tensor(FLOATS)
    row_axis = aligned_row_axis


class Layout(Operator):
    """Base of operators that move the elements of one tensor of any element type.

    A quantized input's integers move as they are, and the output has the same quantization. With a
    scale for each index of an axis, that is so where the axis stays whole.
    """

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)

    def infer_shape_value(self) -> Sequence[Dim]:
        return shape_value_by_elements(self)

    def moved_quantization(self) -> Quantization | None:
        quantization = self.input.type.quantization
        if quantization is None or quantization.axis is None:
            return super().moved_quantization()
        try:
            rank = len(shape_of(self.input))
            axis = self.moved_axis(quantization.axis % rank, rank)
        except (UnknownRank, ComputedParameter):
            return None
        if axis is None:
            return None
        return Quantization(quantization.scale, quantization.zero_point, axis)

    def moved_axis(self, axis: int, rank: int) -> int | None:
        """The axis of the output that one of the input becomes; `None` if it is not as it was."""
        return None


def shape_asked(operation: Operator, slot: str) -> Sequence[Dim]:
    """The value of a shape parameter; where it is computed, sizes by name or unknown ones."""
    operand = operation.operand(slot)
    assert operand is not None, "asked for where it is not left out"
    try:
        return shape_value_of(operand)
    except UnknownRank:
        length = operand.type.static_shape
        if length is None:
            raise
        return unknown_sizes(length[0] if length else 1, slot)
