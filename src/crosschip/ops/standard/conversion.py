"""Changes of element type, and none at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.types import ALL_TYPES, INDICES
from crosschip.ops.definition.kinds import Elementwise, aligned_row_axis
from crosschip.ops.definition.operator import UnknownRank, shape_value_of
from crosschip.ops.definition.registry import operator, operator_named
from crosschip.ops.definition.slots import choice, element_type, flag, tensor
from crosschip.ops.numerics.casting import PowerRounding, cast


@operator("ASSIGN")
class Assign(Elementwise):
    """`output = input`, bit by bit, for any element type and shape."""

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return input

    def decompose(self, b: Builder) -> Operand:
        shape = b.add(operator_named("SHAPE"), self.input)
        return b.add(operator_named("RESHAPE"), self.input, shape)


_BITS = {
    ElementType.FLOAT4E2M1: 4,
    ElementType.INT4: 4,
    ElementType.UINT4: 4,
    ElementType.INT2: 2,
    ElementType.UINT2: 2,
}


@operator("CAST", core=True)
class Cast(Elementwise):
    """The input's values as another element type.

    To bool: what is not 0 becomes true, NaN too. From bool: 0 and 1. From an integer to a narrower
    one: the low bits, in two's complement. From a float to an integer: without the fraction; a
    value out of the integer type's range, an infinite one and NaN give an unspecified one (ONNX:
    "undefined if OOR"; ONNX Runtime and OpenVINO keep low bits of what the processor makes of it,
    XLA gives the nearest end). To a float of
    fewer digits: the nearest, ties to even; beyond the type's range an infinity.

    To a float of 8 bits or fewer: the nearest, ties to even, and beyond the range, infinities too,
    the greatest there is of the sign; if not `saturate`, an infinity, or NaN in a type without
    infinities. NaN stays NaN, and becomes an unspecified value in float4. -0 is 0 in the types that
    have one zero only (`fnuz`).

    To float8_e8m0, which holds powers of 2: `round_mode` says which, `UP` to the greater one,
    `DOWN` to the less, `NEAREST` to the nearer, and to the greater one halfway. 0 becomes the least
    there is, what is beyond the range the greatest, or both NaN if not `saturate`. What is negative
    becomes NaN. Source: ONNX's Cast.
    """

    __slots__ = ()
    input = tensor(ALL_TYPES)
    dtype = element_type()
    saturate = flag(True)
    round_mode = choice(PowerRounding, PowerRounding.UP)
    row_axis = aligned_row_axis

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape_value(self) -> Sequence[Dim]:
        if self.input.type.element_type not in INDICES:
            raise UnknownRank
        return shape_value_of(self.input)

    def reference(self, input: Array) -> Array:
        return cast(input, self.dtype, self.saturate, self.round_mode)


@operator("BIT_CAST", core=True)
class BitCast(Elementwise):
    """The same bits, read as another element type of as many bits.

    A bool is read as the integer 0 or 1, and read from any bits it is whether one is set. A
    quantized input's values are those that its integers stand for. Source: ONNX's BitCast.
    """

    __slots__ = ()
    input = tensor(ALL_TYPES)
    dtype = element_type()

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        own = type(self).input.element_type(self.input)
        if _bits(own) != _bits(self.dtype):
            raise ValueError(f"dtype: {self.dtype} has not as many bits as {own}")
        return super().infer_shape()

    def reference(self, input: Array) -> Array:
        own = type(self).input.element_type(self.input)
        # Narrow floats come widened to float32, which holds each of them exactly.
        bits = input.astype(own.dtype, copy=False)
        if self.dtype is ElementType.BOOL:
            return bits.view(np.uint8) != 0
        return bits.view(self.dtype.dtype)


def _bits(element_type: ElementType) -> int:
    return _BITS.get(element_type, 8 * element_type.dtype.itemsize)
