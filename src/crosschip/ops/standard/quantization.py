"""Conversion of reals to quantized integers and back."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Array, ElementType, ModelError, Quantization, Shape, TensorType
from crosschip.ir.types import FLOATS, QUANTIZABLE
from crosschip.ops.definition import quantized
from crosschip.ops.definition.kinds import Elementwise
from crosschip.ops.definition.operator import UnknownRank, operator, shape_of
from crosschip.ops.definition.shapes import axis_in, same
from crosschip.ops.definition.slots import ComputedParameter, element_type, integer, reals, tensor
from crosschip.ops.numerics.casting import SATURATING


@operator("QUANTIZE", core=True)
class Quantize(Elementwise):
    """`output = clamp(round(input / scale) + zero_point)`, in the range of `dtype`.

    Rounding is to the nearest, ties to even, of the quotient in the input's type (float32 for
    narrower ones); infinities are clamped, NaN becomes any integer. `scale` and
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

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return None if axes[0] == self._axis() else axes[0]

    def reference(self, input: Array) -> Array:
        return quantized.stored(input, self._quantization(), self.dtype)


@operator("DEQUANTIZE", core=True)
class Dequantize(Elementwise):
    """`output = (input - zero_point) * scale` in float32, as the input's quantization says.

    Computed in float64 and rounded once. The input is of an integer type of 2 to 32 bits, or a
    float of 4 or 8 bits, with a scale and a zero point for the whole or for each index of an axis.
    """

    __slots__ = ()
    input = tensor(QUANTIZABLE)

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

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        quantization = self.input.type.quantization
        along = None if quantization is None else quantization.axis
        if along is not None and axes[0] == along % len(shape_of(self.input)):
            return None
        return axes[0]

    def reference(self, input: Array) -> Array:
        quantization = self.input.type.quantization
        assert quantization is not None, "infer_shape has checked it"
        return quantized.reals(input, quantization)
