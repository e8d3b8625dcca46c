"""What operators that move a tensor's elements share."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Dim, ElementType, Quantization
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.examples import random
from crosschip.ops.operator import Operator, UnknownRank, shape_of, sizes_in
from crosschip.ops.shapes import unknown_sizes
from crosschip.ops.sizes import moved_sizes
from crosschip.ops.slots import ComputedParameter, tensor

INT8 = random(
    2, 3, 4, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
)
BY_CHANNEL = random(
    *(2, 3, 4),
    dtype=ElementType.INT8,
    low=-128,
    high=128,
    quantization=Quantization((0.5, 0.25, 0.1), axis=1),
)


class Layout(Operator):
    """Base of operators that move the elements of one tensor of any element type.

    A quantized input's integers move as they are, and the output has the same quantization. With a
    scale for each index of an axis, that is so where the axis stays whole.
    """

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)

    def sizes_asked(self, slot: str) -> Sequence[Dim]:
        """The value of a shape parameter, with unknown sizes where it is computed."""
        return shape_asked(self, slot)

    def infer_sizes(self) -> Sequence[Dim]:
        return moved_sizes(self)

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
        """Where an axis of the input is in the output; `None` if it is not there as it was."""
        return None


def shape_asked(operation: Operator, slot: str) -> Sequence[Dim]:
    """The value of a shape parameter; where it is computed, sizes by name or unknown ones."""
    operand = operation.operand(slot)
    assert operand is not None, "asked for where it is not left out"
    try:
        return sizes_in(operand)
    except UnknownRank:
        length = operand.type.static_shape
        if length is None:
            raise
        return unknown_sizes(length[0] if length else 1, slot)
