"""Base classes of operators that share slots and inference: elementwise, broadcast, layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosschip.ir import Array, Dim, Operand, Quantization, Shape
from crosschip.ir.types import ALL_TYPES, FLOATS, NUMBERS
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of, shape_value_of
from crosschip.ops.definition.shape_values import shape_value_by_elements
from crosschip.ops.definition.shapes import broadcast, unknown_sizes
from crosschip.ops.definition.slots import ComputedParameter, fuse, tensor


def number(value: float, like: Operand) -> Array:
    """Return a scalar of an operand's element type; -1 wraps around in unsigned types."""
    return np.array(value).astype(like.type.element_type.dtype)


def aligned_row_axis(operation: Operator, axes: Sequence[int | None]) -> int | None:
    """Return `Operator.row_axis` of an elementwise operation with shapes aligned at their ends.

    An input without rows must not vary along the row axis: its size there is 1, or it lacks the
    axis.
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
    """Base class of operators whose output has the shape and element type of their first input."""

    __slots__ = ()

    def infer_shape(self) -> Shape:
        return shape_of(self.filled()[0][1])


class Broadcast(Operator):
    """Base class of operators on two tensors of one element type, with NumPy broadcasting.

    Shapes are aligned at their last axes; a tensor is repeated along axes of size 1 and missing
    axes.
    """

    __slots__ = ()
    input0 = tensor(NUMBERS)
    input1 = tensor(NUMBERS, like="input0")
    row_axis = aligned_row_axis

    def infer_shape(self) -> Shape:
        return broadcast(shape_of(self.input0), shape_of(self.input1))


class Binary(Broadcast):
    """Base class of arithmetic on two tensors; `fuse_code` is applied to the result."""

    __slots__ = ()
    fuse_code = fuse()


class Unary(Elementwise):
    """Base class of functions of one real."""

    __slots__ = ()
    input = tensor(FLOATS)
    row_axis = aligned_row_axis


class Layout(Operator):
    """Base class of operators that move the elements of one tensor of any element type.

    Quantized elements move unchanged, and the output has the input's quantization. With per-axis
    scales, this requires that the axis stays intact.
    """

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)
    infer_shape_value = shape_value_by_elements

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
        return replace(quantization, axis=axis)

    def moved_axis(self, axis: int, rank: int) -> int | None:
        """Return the output axis that an input axis moves to unchanged, or `None`."""
        return None


def shape_parameter(operation: Operator, slot: str) -> Sequence[Dim]:
    """Return the value of a shape parameter; a computed one has named or unknown sizes."""
    operand = operation.operand(slot)
    assert operand is not None, "asked for where it is not left out"
    try:
        return shape_value_of(operand)
    except UnknownRank:
        length = operand.type.static_shape
        if length is None:
            raise
        return unknown_sizes(length[0] if length else 1, slot)
