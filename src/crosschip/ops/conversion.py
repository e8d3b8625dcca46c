"""Changes of element type, and to and from quantized types."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Array, ElementType, ModelError, Quantization, Shape, TensorType
from crosschip.ir.types import ALL_TYPES, FLOATS, QUANTIZABLE
from crosschip.ops import quantized
from crosschip.ops.elementwise import Elementwise
from crosschip.ops.operator import UnknownRank, operator, shape_of
from crosschip.ops.shapes import axis_in, same
from crosschip.ops.slots import ComputedParameter, element_type, integer, reals, tensor


@operator("CAST")
class Cast(Elementwise):
    """The input's values as another element type.

    A float becomes an integer by dropping the fraction; what is not 0 becomes true. A value out of
    the integer type's range gives an unspecified one.
    """

    __slots__ = ()
    input = tensor(ALL_TYPES)
    dtype = element_type()

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def reference(self, input: Array, dtype: ElementType) -> Array:
        return input.astype(dtype.dtype)


@operator("QUANTIZE")
class Quantize(Elementwise):
    """`output = clamp(round(input / scale) + zero_point)`, in the range of `dtype`.

    Rounding is to the nearest, ties to even. `scale` and `zero_point` have one element, or one for
    each index of `axis`; they become the quantization of the output's type.
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
            scale, zero_point, axis = self.scale, self.zero_point, self._axis()
        except UnknownRank:
            raise ModelError("QUANTIZE.input: its rank must be known for an axis") from None
        except ComputedParameter as error:
            raise ModelError(f"QUANTIZE.{error}, but must be constant") from None
        except ValueError as error:
            raise ModelError(f"QUANTIZE.{error}") from None
        try:
            return Quantization(scale, tuple(map(int, zero_point)), axis)
        except ValueError as error:
            raise ModelError(f"QUANTIZE.scale: {error}") from None

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
        return quantized.integers(input, self._quantization(), dtype)


@operator("DEQUANTIZE")
class Dequantize(Elementwise):
    """`output = (input - zero_point) * scale` in float32, as the input's quantization says."""

    __slots__ = ()
    input = tensor(QUANTIZABLE)

    def infer_element_type(self) -> ElementType:
        return ElementType.FLOAT32

    def infer_shape(self) -> Shape:
        if self.input.type.quantization is None:
            raise ValueError("input: is not quantized")
        return shape_of(self.input)

    def reference(self, input: Array) -> Array:
        quantization = self.input.type.quantization
        assert quantization is not None, "infer_shape has checked it"
        return quantized.reals(input, quantization)
