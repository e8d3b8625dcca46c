"""Changes of element type, and to and from quantized types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Dim, ElementType, ModelError, Quantization, Shape, TensorType
from crosschip.ir.types import ALL_TYPES, FLOATS, INDICES, QUANTIZABLE
from crosschip.ops import quantized
from crosschip.ops.casting import SATURATING, PowerRounding, cast
from crosschip.ops.elementwise import Elementwise
from crosschip.ops.examples import example, given, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.operator import UnknownRank, operator, shape_of, sizes_in
from crosschip.ops.shapes import axis_in, same
from crosschip.ops.slots import (
    ComputedParameter,
    choice,
    element_type,
    flag,
    integer,
    reals,
    tensor,
)

_BITS = {
    ElementType.FLOAT4E2M1: 4,
    ElementType.INT4: 4,
    ElementType.UINT4: 4,
    ElementType.INT2: 2,
    ElementType.UINT2: 2,
}
_NARROW_CASTS = (
    (ElementType.BFLOAT16, 100),
    (ElementType.FLOAT8E4M3FN, 1000),
    (ElementType.FLOAT8E5M2, 100),
    (ElementType.FLOAT4E2M1, 5),
    (ElementType.INT4, 8),
)


@operator(
    "CAST",
    nnadapter=NNAdapter(10),
    nnrt=(
        NNRt(6, "CAST", ("input", "dtype")),
        NNRt(
            *(52, "QUANT_DTYPE_CAST"),
            parameters={"SRC_T": "", "DST_T": "dtype", "AXIS": ""},
            translation="To a quantized type it is QUANTIZE, along AXIS, by the quantization of "
            "the output; from one it is DEQUANTIZE; else CAST. SRC_T is the type of the input.",
        ),
    ),
    hdi=(NodeType.CAST, NodeType.QUANT_DTYPE_CAST),
    onnx=("Cast", "CastLike"),
    core=True,
)
class Cast(Elementwise):
    """The input's values as another element type.

    To bool: what is not 0 becomes true, NaN too. From bool: 0 and 1. From an integer to a narrower
    one: the low bits, in two's complement. From a float to an integer: without the fraction; a
    value out of the integer type's range, an infinite one and NaN give an unspecified one. To a
    float of fewer digits: the nearest, ties to even; beyond the type's range an infinity.

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
    examples = (
        example(input=random(2, 3, low=-9, high=9), dtype=ElementType.INT32),
        example(input=given([0.0, -0.0, 0.3, -2.0]), dtype=ElementType.BOOL),
        example(input=random(6, dtype=ElementType.BOOL), dtype=ElementType.FLOAT32),
        example(
            input=random(8, dtype=ElementType.INT32, low=-999, high=999), dtype=ElementType.UINT8
        ),
        example(input=random(5, dtype=ElementType.INT64), dtype=ElementType.FLOAT16),
        *(example(input=random(2, 9, low=-n, high=n), dtype=dtype) for dtype, n in _NARROW_CASTS),
        example(input=given([0.1, 3.0, 1e30]), dtype=ElementType.FLOAT8E8M0),
        example(
            input=random(7, low=-999, high=999), dtype=ElementType.FLOAT8E4M3FNUZ, saturate=False
        ),
        example(
            input=random(
                9, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.5,))
            ),
            dtype=ElementType.INT32,
        ),
    )

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_sizes(self) -> Sequence[Dim]:
        if self.input.type.element_type not in INDICES:
            raise UnknownRank
        return sizes_in(self.input)

    def reference(
        self, input: Array, dtype: ElementType, saturate: bool, round_mode: PowerRounding
    ) -> Array:
        return cast(input, dtype, saturate, round_mode)


@operator("BIT_CAST", onnx=("BitCast",), core=True)
class BitCast(Elementwise):
    """The same bits, read as another element type of as many bits.

    A bool is read as the integer 0 or 1, and read from any bits it is whether one is set. A
    quantized input's values are those that its integers stand for. Source: ONNX's BitCast.
    """

    __slots__ = ()
    input = tensor(ALL_TYPES)
    dtype = element_type()
    examples = (
        example(input=random(2, 3), dtype=ElementType.INT32),
        example(input=random(5, dtype=ElementType.INT64, low=-9, high=9), dtype=ElementType.UINT64),
        example(input=random(5, dtype=ElementType.BFLOAT16), dtype=ElementType.UINT16),
        example(input=random(5, dtype=ElementType.INT8, low=-9, high=9), dtype=ElementType.UINT8),
    )

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        own = type(self).input.element_type(self.input)
        if _bits(own) != _bits(self.dtype):
            raise ValueError(f"dtype: {self.dtype} has not as many bits as {own}")
        return super().infer_shape()

    def reference(self, input: Array, dtype: ElementType) -> Array:
        own = type(self).input.element_type(self.input)
        # Narrow floats come widened to float32, which holds each of them exactly.
        bits = input.astype(own.dtype, copy=False)
        if dtype is ElementType.BOOL:
            return bits.view(np.uint8) != 0
        return bits.view(dtype.dtype)


def _bits(element_type: ElementType) -> int:
    return _BITS.get(element_type, 8 * element_type.dtype.itemsize)


@operator(
    "QUANTIZE",
    nnadapter=NNAdapter(
        *(60, ("input", "axis", "scale", "zero_point")),
        translation="`dtype` is the element type of the output operand.",
    ),
    onnx=("QuantizeLinear",),
    core=True,
)
class Quantize(Elementwise):
    """`output = clamp(round(input / scale) + zero_point)`, in the range of `dtype`.

    Rounding is to the nearest, ties to even, of the quotient in the input's type (float32 for
    narrower ones); infinities are clamped, NaN becomes the integer 0. `scale` and
    `zero_point` have one element, or one for each index of `axis`; a negative axis counts from the
    last one. They must be constant: they become the quantization of the output's type, which is an
    integer of 2 to 32 bits. A zero point out of its range is an error.

    `dtype` may be a float of 4 or 8 bits as well. Then nothing is rounded to an integer:
    `output = cast(input / scale + zero_point)`, as CAST does it with `saturate`.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    axis = integer(1)
    scale = reals()
    zero_point = reals((0.0,))
    dtype = element_type(ElementType.INT8)
    examples = (
        example(input=random(2, 3, low=-10, high=10), scale=(0.05,)),
        example(
            input=random(2, 3),
            scale=(0.01,),
            zero_point=(128.0,),
            dtype=ElementType.UINT8,
        ),
        example(input=random(2, 3, 2), axis=-2, scale=(0.02, 0.01, 0.5)),
        example(
            input=random(2, 3),
            axis=0,
            scale=(0.01, 0.005),
            zero_point=(10.0, 200.0),
            dtype=ElementType.UINT8,
        ),
        *(
            example(input=random(2, 9), scale=(0.25,), dtype=dtype)
            for dtype in (
                *(ElementType.INT16, ElementType.UINT16, ElementType.INT32),
                *(ElementType.INT4, ElementType.UINT4, ElementType.INT2, ElementType.UINT2),
                *(ElementType.FLOAT8E4M3FN, ElementType.FLOAT8E5M2, ElementType.FLOAT4E2M1),
            )
        ),
    )

    def infer_element_type(self) -> ElementType:
        if self.dtype not in QUANTIZABLE:
            raise ModelError(f"QUANTIZE.dtype: {self.dtype} is not a quantized type")
        return self.dtype

    def storage(self, plain: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (integers,) = plain
        return (TensorType(integers.element_type, integers.shape, self._quantization()),)

    def _quantization(self) -> Quantization:
        try:
            scale, zero_point, axis = self.scale, self._zero_point(), self._axis()
        except UnknownRank:
            raise ModelError("QUANTIZE.input: its rank must be known for an axis") from None
        except ComputedParameter as error:
            raise ModelError(f"QUANTIZE.{error}, but must be constant") from None
        except ValueError as error:
            raise ModelError(f"QUANTIZE.{error}") from None
        try:
            return Quantization(scale, zero_point, axis)
        except ValueError as error:
            raise ModelError(f"QUANTIZE.scale: {error}") from None

    def _zero_point(self) -> tuple[int, ...]:
        zero_point = tuple(map(int, self.zero_point))
        if self.dtype not in SATURATING:
            low, high = quantized.limits(self.dtype)
            if not all(low <= zero <= high for zero in zero_point):
                raise ValueError(f"zero_point: {list(zero_point)} are beyond {self.dtype}")
        return zero_point

    def _axis(self) -> int | None:
        if len(self.scale) < 2:
            return None
        shape = shape_of(self.input)
        axis = axis_in(self.axis, len(shape))
        same(shape[axis], len(self.scale), "scale: its size, and that of the axis")
        return axis

    def reference(
        self,
        input: Array,
        axis: int,
        scale: Sequence[float],
        zero_point: Sequence[float],
        dtype: ElementType,
    ) -> Array:
        return quantized.stored(input, self._quantization(), dtype)


@operator("DEQUANTIZE", nnadapter=NNAdapter(19), onnx=("DequantizeLinear",), core=True)
class Dequantize(Elementwise):
    """`output = (input - zero_point) * scale` in float32, as the input's quantization says.

    Computed in float64 and rounded once. The input is of an integer type of 2 to 32 bits, or a
    float of 4 or 8 bits, with a scale and a zero point for the whole or for each index of an axis.
    """

    __slots__ = ()
    input = tensor(QUANTIZABLE)
    examples = tuple(
        example(input=random(2, 4, dtype=dtype, low=low, high=high, quantization=quantization))
        for dtype, low, high, quantization in (
            (ElementType.INT8, -128, 128, Quantization((0.05,))),
            (ElementType.INT8, -128, 128, Quantization((0.05, 0.2), axis=0)),
            (ElementType.UINT8, 0, 256, Quantization((0.05,), (128,))),
            (ElementType.UINT8, 0, 256, Quantization((1, 2, 3, 4), (0, 1, 128, 255), axis=1)),
            (ElementType.INT16, -999, 999, Quantization((0.001,))),
            (ElementType.INT32, -(10**6), 10**6, Quantization((0.001, 0.5), axis=0)),
            (ElementType.INT4, -8, 8, Quantization((0.5,), (1,))),
            (ElementType.UINT4, 0, 16, Quantization((0.5,), (8,))),
            (ElementType.INT2, -2, 2, Quantization((0.5,))),
            (ElementType.UINT2, 0, 4, Quantization((0.5,), (1,))),
            (ElementType.FLOAT8E4M3FN, -9, 9, Quantization((0.5,))),
        )
    )

    def infer_element_type(self) -> ElementType:
        return ElementType.FLOAT32

    def infer_shape(self) -> Shape:
        if self.input.type.quantization is None:
            raise ValueError("input: is not quantized")
        shape, axis = shape_of(self.input), self.input.type.quantization.axis
        if axis is not None:
            count = len(self.input.type.quantization.scale)
            along = axis_in(axis, len(shape), "input: the axis of its quantization")
            same(shape[along], count, "input: the size of an axis, and the number of its scales")
        return shape

    def reference(self, input: Array) -> Array:
        quantization = self.input.type.quantization
        assert quantization is not None, "infer_shape has checked it"
        return quantized.reals(input, quantization)
