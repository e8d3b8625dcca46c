"""Conversions between reals and quantized integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import (
    Arithmetic,
    Array,
    Builder,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    Shape,
    TensorType,
)
from crosschip.ir.dimension import ceil_div
from crosschip.ir.types import FLOATS, NARROW_FLOATS, QUANTIZABLE
from crosschip.ops.definition import quantized
from crosschip.ops.definition.kinds import Elementwise
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shapes import normalize_axis, require_rank, unify
from crosschip.ops.definition.slots import (
    ComputedParameter,
    element_type,
    flag,
    integer,
    optional_tensor,
    reals,
    tensor,
)
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin
from crosschip.ops.standard.unary import Round

_INTEGERS = QUANTIZABLE - NARROW_FLOATS


def parameters(quantization: Quantization) -> dict[str, Any]:
    """Return the parameters of QUANTIZE and REINTERPRET for a quantization."""
    return {
        "axis": quantization.axis or 0,
        "scale": quantization.scale,
        "zero_point": tuple(map(float, quantization.zero_point)),
    }


class _Scaled(Elementwise):
    """Base class of operators whose parameters are the quantization of the output."""

    __slots__ = ()
    input = tensor(QUANTIZABLE)
    axis = integer(1)
    scale = reals()
    zero_point = reals((0.0,))

    def _quantization(self, dtype: ElementType) -> Quantization:
        try:
            scale, zero_point, axis = self.scale, self._zero_point(dtype), self._axis()
        except UnknownRank:
            raise ModelError(f"{self.type}.input: its rank must be known for an axis") from None
        except ComputedParameter as error:
            raise ModelError(f"{self.type}.{error}, but must be constant") from None
        except ValueError as error:
            raise ModelError(f"{self.type}.{error}") from None
        declared = self.output_quantization
        arithmetic = declared[0].arithmetic if declared and declared[0] else Arithmetic.REAL
        try:
            return Quantization(scale, zero_point, axis, arithmetic)
        except ValueError as error:
            raise ModelError(f"{self.type}.scale: {error}") from None

    def _zero_point(self, dtype: ElementType) -> tuple[int, ...]:
        zero_point = tuple(map(int, self.zero_point))
        if dtype not in NARROW_FLOATS:
            low, high = quantized.limits(dtype)
            if not all(low <= zero <= high for zero in zero_point):
                raise ValueError(f"zero_point: {list(zero_point)} are beyond {dtype}")
        return zero_point

    def _axis(self) -> int | None:
        if len(self.scale) < 2:
            return None
        shape = shape_of(self.input)
        axis = normalize_axis(self.axis, len(shape))
        unify(shape[axis], len(self.scale), "scale: its size, and that of the axis")
        return axis


@operator("QUANTIZE", core=True)
class Quantize(_Scaled):
    """`output = clamp(round(input / scale) + zero_point)`, in the range of `dtype`.

    The quotient, in the input's type (float32 for narrower ones), is rounded to nearest, ties to
    even; infinities are clamped, NaN becomes any integer. `scale` and `zero_point` have one
    element, or one per index of `axis`; a negative axis counts from the last one. They must be
    constant, because they become the quantization of the output's type, which is an integer of 2 to
    32 bits. A zero point out of its range is an error.

    `dtype` may also be a float of 4 or 8 bits. Then nothing is rounded to an integer: `output =
    cast(input / scale + zero_point)`, as CAST does with `saturate`.
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
        return (
            TensorType(
                integers.element_type, integers.shape, self._quantization(integers.element_type)
            ),
        )

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return None if axes[0] == self._axis() else axes[0]

    def reference(self, input: Array) -> Array:
        return quantized.stored(input, self._quantization(self.dtype), self.dtype)

    def decompose(self, b: Builder) -> Operand | None:
        """Build a cast to int32, which few devices quantize to, with one scale."""
        if self.dtype is not ElementType.INT32 or len(self.scale) > 1:
            return None
        like = self.input.type.element_type.dtype.type
        steps = b.add(Round, b.add(Div, self.input, like(self.scale[0])))
        if any(self.zero_point):
            steps = b.add(Add, steps, like(self.zero_point[0]))
        low, high = quantized.limits(self.dtype)
        # A float32 has no nearer number below the greatest integer.
        integers = b.add(Cast, b.add(Clip, steps, float(low), float(high - 127)), self.dtype)
        return b.add(Reinterpret, integers, self.axis, self.scale, self.zero_point)


@operator("DEQUANTIZE", core=True)
class Dequantize(Elementwise):
    """`output = (input - zero_point) * scale` in float32, by the input's quantization.

    It is computed in float64 and rounded once. The input has an integer type of 2 to 32 bits or a
    float type of 4 or 8 bits, with a scale and a zero point per tensor or per index of an axis.
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
            along = normalize_axis(axis, len(shape), "input: the axis of its quantization")
            unify(shape[along], count, "input: the size of an axis, and the number of its scales")
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

    def decompose(self, b: Builder) -> Operand | None:
        """Build a cast from int32, which few devices dequantize, with one scale."""
        quantization = self.input.type.quantization
        if self.input.type.element_type is not ElementType.INT32 or quantization is None:
            return None
        if quantization.axis is not None:
            return None
        integers = b.add(Reinterpret, self.input, bare=True)
        steps = b.add(Cast, integers, ElementType.FLOAT32)
        if not quantization.symmetric:
            steps = b.add(Sub, steps, np.float32(quantization.zero_point[0]))
        return b.add(Mul, steps, np.float32(quantization.scale[0]))


@operator("DEQUANTIZE_BLOCKS")
class DequantizeBlocks(Operator):
    """`output = (input - zero_point) * scale`, with a scale and a zero point per block.

    A block is `block_size` elements along `axis` (negative: counted from the last one); the last
    block may be shorter. `scale` and `zero_point` have one element per block: the input's shape
    except on `axis`. The default zero point is 0. The output has the scale's type. The difference
    is computed in float32, and the product is rounded once. The operator reads the stored integers
    of a quantized tensor.

    If the output for integers of 4 bits or fewer is an operand of MAT_MUL or FULLY_CONNECTED, a
    device may round the other operand to int8 with a scale per block.

    Source: ONNX's DequantizeLinear with `block_size`.
    """

    __slots__ = ()
    unenforced = frozenset({"input"})
    input = tensor(_INTEGERS)
    scale = tensor(FLOATS - {ElementType.FLOAT64})
    zero_point = optional_tensor(_INTEGERS, like="input")
    axis = integer(0)
    block_size = integer()

    def infer_element_type(self) -> ElementType:
        return self.scale.type.element_type

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axis = normalize_axis(self.axis, len(shape))
        if self.block_size < 1:
            raise ValueError(f"block_size: {self.block_size} is not positive")
        blocks = (*shape[:axis], ceil_div(shape[axis], self.block_size), *shape[axis + 1 :])
        for slot, operand in (("scale", self.scale), ("zero_point", self.zero_point)):
            actual = () if operand is None else require_rank(shape_of(operand), len(shape), slot)
            for size, expected in zip(actual, blocks, strict=False):
                unify(size, expected, f"{slot}: a size, and the number of blocks")
        return shape

    def reference(self, input: Array, scale: Array, zero_point: Array | None) -> Array:
        steps = input.astype(np.float32)
        if zero_point is not None:
            steps -= self._spread(zero_point.astype(np.float32), input)
        return (steps * self._spread(scale.astype(np.float32), input)).astype(scale.dtype)

    def _spread(self, numbers: Array, input: Array) -> Array:
        """Return the number of each element's block, for each element."""
        axis = normalize_axis(self.axis, input.ndim)
        blocks = np.arange(input.shape[axis]) // self.block_size
        return np.take(numbers, blocks, axis)

    def decompose(self, b: Builder) -> Operand | None:
        axis = normalize_axis(self.axis, len(shape_of(self.input)))
        size = shape_of(self.input)[axis]
        if not isinstance(size, int):
            return None
        blocks = b.constant(np.arange(size) // self.block_size)

        def spread(operand: Operand) -> Operand:
            wide = b.add(Cast, build_bare(b, operand), ElementType.FLOAT32)
            return b.add(Gather, wide, blocks, axis=axis)

        steps = b.add(Cast, build_bare(b, self.input), ElementType.FLOAT32)
        if self.zero_point is not None:
            steps = b.add(Sub, steps, spread(self.zero_point))
        product = b.add(Mul, steps, spread(self.scale))
        return b.add(Cast, product, self.scale.type.element_type)


def build_bare(b: Builder, operand: Operand) -> Operand:
    """Build an unquantized operand from the stored integers of an operand."""
    return operand if operand.type.quantization is None else b.add(Reinterpret, operand, bare=True)


@operator("REINTERPRET", core=True)
class Reinterpret(_Scaled):
    """The input's integers unchanged, with another quantization.

    They represent `(integer - zero_point) * scale`, independently of the input's quantization.
    `scale` and `zero_point` have one element, or one per index of `axis`; a negative axis counts
    from the last one. They must be constant, because they become the quantization of the output's
    type. With `bare`, the output is unquantized, and `scale` is ignored.
    """

    __slots__ = ()
    unenforced = frozenset({"scale"})
    scale = reals((1.0,))
    bare = flag(False)

    def infer_element_type(self) -> ElementType:
        return self.input.type.element_type

    def storage(self, plain: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        (type_,) = plain
        try:
            quantization = None if self.bare else self._quantization(type_.element_type)
        except ComputedParameter as error:
            raise ModelError(f"{self.type}.{error}, but must be constant") from None
        return (TensorType(type_.element_type, type_.shape, quantization),)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return axes[0] if self.bare or axes[0] != self._axis() else None

    def reference(self, input: Array) -> Array:
        return input


@operator("DYNAMIC_QUANTIZE")
class DynamicQuantize(Operator):
    """The input as 8-bit integers, with a scale from its smallest to its largest element.

    With `low = min(0, min(input))` and `high = max(0, max(input))`, the second output is `scale =
    (high - low) / 255`, or 1 if that is 0, the third `zero_point = round(-low / scale)`, both
    scalars, and the first `clamp(round(input / scale) + zero_point)`, all computed in float32 and
    rounded to nearest, ties to even. The input must not be empty; if it contains NaN or an
    infinity, the outputs are unspecified.

    Source: ONNX's DynamicQuantizeLinear.
    """

    __slots__ = ()
    unenforced = frozenset({"input"})
    input = tensor({ElementType.FLOAT32})

    def infer_shape(self) -> Sequence[Shape]:
        shape = shape_of(self.input)
        if 0 in shape:
            raise ValueError("input: has no elements")
        return [shape, (), ()]

    def infer_element_type(self) -> Sequence[ElementType]:
        return [ElementType.UINT8, ElementType.FLOAT32, ElementType.UINT8]

    def output_count(self) -> int:
        return 3

    def reference(self, input: Array) -> Sequence[Array]:
        reals = input.astype(np.float32, copy=False)
        low, high = np.minimum(reals.min(), 0), np.maximum(reals.max(), 0)
        scale = (high - low) / np.float32(255) or np.float32(1)
        zero_point = np.rint(-low / scale)
        steps = np.clip(np.rint(reals / scale) + zero_point, 0, 255)
        return [
            np.nan_to_num(steps).astype(np.uint8),
            np.array(scale, np.float32),
            np.array(np.nan_to_num(zero_point), np.uint8),
        ]

    def decompose(self, b: Builder) -> Sequence[Operand]:
        zero = b.constant(np.zeros((), np.float32))
        all_axes = tuple(range(len(shape_of(self.input))))
        low = b.add(Min, b.add(ReduceMin, self.input, all_axes, keepdim=False), zero)
        high = b.add(Max, b.add(ReduceMax, self.input, all_axes, keepdim=False), zero)
        step = b.add(Div, b.add(Sub, high, low), np.array(255, np.float32))
        scale = b.add(Where, b.add(Equal, step, zero), np.array(1, np.float32), step)
        shift = b.add(Round, b.add(Div, b.add(Sub, zero, low), scale))
        steps = b.add(Add, b.add(Round, b.add(Div, self.input, scale)), shift)
        integers = b.add(Cast, b.add(Clip, steps, 0.0, 255.0), ElementType.UINT8)
        return [integers, scale, b.add(Cast, shift, ElementType.UINT8)]
