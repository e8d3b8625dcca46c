"""Conversions of element types, and the identity."""

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
    """Conversion of the input's values to another element type.

    To bool: values other than 0 become true, also NaN. From bool: 0 and 1. From an integer to a
    narrower one: the low bits, in two's complement. From a float to an integer: truncated; a value
    out of the integer type's range, an infinity and NaN give an unspecified value (ONNX: "undefined
    if OOR"; ONNX Runtime and OpenVINO keep low bits of the processor's result, XLA clamps). To a
    float with fewer digits: the nearest value, ties to even; an infinity if out of range.

    To a float of 8 bits or fewer: the nearest value, ties to even; values out of range, also
    infinities, become the largest value of their sign, or, if not `saturate`, an infinity, or NaN
    in a type without infinities. NaN stays NaN, but becomes an unspecified value in float4. -0
    becomes 0 in the types with a single zero (`fnuz`).

    To float8_e8m0, which holds powers of 2: `round_mode` is `UP` to the next larger one, `DOWN` to
    the next smaller one, or `NEAREST` with ties up. 0 becomes the smallest value, values out of
    range the largest; both become NaN if not `saturate`. Negative values become NaN. Source: ONNX's
    Cast.
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
    """Reinterpretation of the same bits as another element type with equally many bits.

    A bool is read as the integer 0 or 1; bits read as a bool are true if any is set. The values of
    a quantized input are the reals that it represents. Source: ONNX's BitCast.
    """

    __slots__ = ()
    input = tensor(ALL_TYPES)
    dtype = element_type()

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        source = type(self).input.element_type(self.input)
        if _bits(source) != _bits(self.dtype):
            raise ValueError(f"dtype: {self.dtype} has not as many bits as {source}")
        return super().infer_shape()

    def reference(self, input: Array) -> Array:
        source = type(self).input.element_type(self.input)
        # Narrow floats arrive converted to float32, which represents them exactly.
        bits = input.astype(source.dtype, copy=False)
        if self.dtype is ElementType.BOOL:
            return bits.view(np.uint8) != 0
        return bits.view(self.dtype.dtype)


def _bits(element_type: ElementType) -> int:
    return _BITS.get(element_type, 8 * element_type.dtype.itemsize)
