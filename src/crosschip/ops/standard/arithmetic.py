"""Elementwise arithmetic on two or more tensors, and on one tensor with a scale or bounds.

For quantized tensors, rules for reals apply: see `crosschip.ops.definition.quantized`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.dimension import exact_quotient, is_natural, is_unknown, minimum
from crosschip.ir.types import FLOATS, NUMBERS
from crosschip.ops.definition.kinds import Binary, Broadcast, Elementwise, aligned_row_axis
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of, shape_value_of
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.registry import operator, operator_named
from crosschip.ops.definition.shape_values import (
    Sizes,
    shape_value_by_elements,
    shape_value_by_pairs,
)
from crosschip.ops.definition.shapes import broadcast, normalize_axis, unify
from crosschip.ops.definition.slots import (
    Fuse,
    Parameter,
    flag,
    fuse,
    integer,
    optional_tensor,
    tensor,
    tensors,
)
from crosschip.ops.standard.conversion import Assign


@operator("ADD", core=True)
class Add(Binary):
    """`output = input0 + input1`, with NumPy broadcasting.

    Integers wrap around on overflow.
    """

    __slots__ = ()
    infer_shape_value = shape_value_by_elements

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.add(input0, input1)


@operator("SUB", core=True)
class Sub(Binary):
    """`output = input0 - input1`, with NumPy broadcasting.

    Integers wrap around on overflow.
    """

    __slots__ = ()
    infer_shape_value = shape_value_by_elements

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.subtract(input0, input1)


@operator("MUL", core=True)
class Mul(Binary):
    """`output = input0 * input1`, with NumPy broadcasting.

    Integers wrap around on overflow.
    """

    __slots__ = ()

    def infer_shape_value(self) -> Sequence[Dim] | None:
        """Return products of sizes, of equally many or with one of the inputs repeated."""
        first, second = shape_value_of(self.input0), shape_value_of(self.input1)
        if any(isinstance(size, int) and size < 0 for size in (*first, *second)):
            return None
        if self.fuse_code is not Fuse.NONE:
            return None
        if not first or not second:
            return ()
        count = max(len(first), len(second))
        pairs = zip(*(part * (count // len(part)) for part in (first, second)), strict=False)
        return [one * other for one, other in pairs]

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.multiply(input0, input1)


@operator("DIV", core=True)
class Div(Binary):
    """`output = input0 / input1`, with NumPy broadcasting.

    Reals follow IEEE 754: division by 0 gives an infinity, 0 / 0 gives NaN. The quotient of
    integers is rounded towards zero; division by 0 gives 0, and the smallest integer divided by -1
    gives itself.
    """

    __slots__ = ()

    def infer_shape_value(self) -> Sequence[Dim]:
        return shape_value_by_pairs(self, _quotient)

    def reference(self, input0: Array, input1: Array) -> Array:
        if input0.dtype.kind not in "iu":
            return np.divide(input0, input1)
        safe = np.where(input1 == 0, 1, input1)
        quotient = np.floor_divide(input0, safe)
        inexact = quotient * safe != input0
        towards_zero = quotient + (inexact & ((input0 < 0) != (safe < 0)))
        return np.where(input1 == 0, 0, towards_zero)


def _quotient(dividend: Dim, divisor: Dim) -> Dim:
    """Return a quotient of sizes; sizes are not negative, so the rounding mode is irrelevant.

    Raises:
        UnknownRank: an element may be negative, the divisor is 0, or the divisor is a dynamic
            dimension that may not divide the dividend.
    """
    if not is_natural(dividend) or divisor in (0, dividend):
        raise UnknownRank
    if not isinstance(divisor, int):
        if is_unknown(dividend) or is_unknown(divisor) or not is_natural(divisor):
            raise UnknownRank
        if exact_quotient(dividend, divisor) * divisor != dividend:
            raise UnknownRank
    elif divisor < 1:
        raise UnknownRank
    return dividend // divisor


def _remainder(dividend: Dim, divisor: Dim) -> Dim:
    """Return the remainder of sizes.

    Raises:
        UnknownRank: as for a quotient, or the divisor may be 0.
    """
    if not isinstance(divisor, int):
        raise UnknownRank
    return dividend - divisor * _quotient(dividend, divisor)


@operator("POW", core=True)
class Pow(Binary):
    """`output = input0 ** input1`, with NumPy broadcasting.

    Reals follow `pow` of IEEE 754: a negative base with a fractional exponent gives NaN, any base
    with exponent 0 gives 1. Integers wrap around on overflow; with a negative exponent, the result
    is truncated towards zero, which gives 0 except for the bases 1 and -1.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        if input0.dtype.kind not in "iu":
            return np.power(input0, input1)
        inverse = np.where(np.abs(input0) == 1, input0 ** (np.abs(input1) % 2), 0)
        return np.where(input1 < 0, inverse, np.power(input0, np.maximum(input1, 0)))


@operator("MAX", core=True)
class Max(Binary):
    """`output = max(input0, input1)`, with NumPy broadcasting.

    NaN if either is NaN; of 0 and -0, either may be the result.
    """

    __slots__ = ()

    def infer_shape_value(self) -> Sequence[Dim]:
        return shape_value_by_pairs(self, lambda one, other: one + other - minimum(one, other))

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.maximum(input0, input1)


@operator("MIN", core=True)
class Min(Binary):
    """`output = min(input0, input1)`, with NumPy broadcasting.

    NaN if either is NaN; of 0 and -0, either may be the result.
    """

    __slots__ = ()

    def infer_shape_value(self) -> Sequence[Dim]:
        return shape_value_by_pairs(self, minimum)

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.minimum(input0, input1)


@operator("SQUARED_DIFFERENCE")
class SquaredDifference(Broadcast):
    """`output = (input0 - input1) ** 2`, with NumPy broadcasting.

    Integers wrap around on overflow.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.square(np.subtract(input0, input1))

    def decompose(self, b: Builder) -> Operand:
        difference = b.add(Sub, self.input0, self.input1)
        return b.add(Mul, difference, difference)


@operator("SUM")
class Sum(Operator):
    """The sum of one or more tensors of one element type, with NumPy broadcasting.

    Tensors are added from the first to the last; each sum is rounded to the element type (float16
    and bfloat16: float32, quantized: float64). Integers wrap around on overflow.
    """

    __slots__ = ()
    terms = tensors(NUMBERS)
    row_axis = aligned_row_axis

    def infer_shape(self) -> Shape:
        return broadcast(*map(shape_of, self.terms), slot="terms")

    def reference(self, terms: Sequence[Array]) -> Array:
        return reduce(np.add, terms)

    def decompose(self, b: Builder) -> Operand:
        first, *others = self.terms
        if not others:
            return b.add(Assign, first)
        return reduce(lambda total, term: b.add(Add, total, term), others, first)


def _limit(default: float) -> Parameter[float]:
    """Declare a bound: a number of any type, so that integers are exact, but not NaN."""

    def decode(array: Array) -> float:
        number: float = array.item()
        if number != number:
            raise ValueError("NaN bounds nothing")
        return number

    return Parameter(NUMBERS, decode, default, kind="number", optional=True)


@operator("CLIP")
class Clip(Elementwise):
    """`output = min(max(input, min), max)`; NaN stays NaN.

    The upper bound wins if it is below the lower one. Bounds are converted to the input's element
    type: rounded for reals; for integers truncated towards zero and clamped to the type's range. A
    bound must not be NaN. A device that fuses it with the producer of its input may output a bound
    for NaN.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    min = _limit(-np.inf)
    max = _limit(np.inf)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        low, high = (_bound(number, input.dtype) for number in (self.min, self.max))
        return np.minimum(np.maximum(input, low), high)

    def decompose(self, b: Builder) -> Operand:
        low, high = self._operand_of(b, "min"), self._operand_of(b, "max")
        raised = b.add(Max, self.input, low) if low else self.input
        if high:
            return b.add(Min, raised, high)
        return raised if low else b.add(Assign, raised)

    def _operand_of(self, b: Builder, slot: str) -> Operand | None:
        """Return a bound as a scalar of the input's element type; `None` if the slot is empty."""
        bound, element_type = self.operand(slot), self.input.type.element_type
        if bound is not None and bound.value is None and bound.type.element_type is element_type:
            return b.add(operator_named("RESHAPE"), bound, ())
        return (
            None if bound is None else b.constant(_bound(getattr(self, slot), element_type.dtype))
        )


def _bound(number: float, dtype: np.dtype) -> Array:
    """Return a bound in an element type."""
    if dtype.kind in "iu":
        low, high = limits(ElementType.of(dtype))
        number = low if number <= low else high if number >= high else int(number)
    with np.errstate(over="ignore"):
        return np.asarray(number).astype(dtype)


class Affine(Elementwise):
    """Base class of arithmetic with tensors that are aligned to the input's axes from `axis` on."""

    __slots__ = ()
    input = tensor(NUMBERS)
    axis: Parameter[int]

    def check_along(self, slot: str, operand: Operand, axis: int) -> None:
        """Raise ValueError unless an operand's sizes match the input's axes from `axis` on."""
        shape, operand_shape = shape_of(self.input), shape_of(operand)
        start = normalize_axis(axis, len(shape))
        if _axes_after(len(shape), len(operand_shape), axis) < 0:
            raise ValueError(
                f"{slot}: has {len(operand_shape)} axes, but the input has "
                f"{len(shape) - start} from axis {axis} on"
            )
        for offset, size in enumerate(operand_shape):
            unify(shape[start + offset], size, f"{slot}: the sizes of the input's axis and its own")

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        # Rows must be before the axes that the tensors are aligned to.
        rows, *others = axes
        first = normalize_axis(self.axis, len(shape_of(self.input)))
        return rows if rows is not None and rows < first and set(others) == {None} else None

    def align(self, b: Builder, operand: Operand, axis: int) -> Operand:
        """Reshape an operand so that it broadcasts to the input."""
        reshape, shape, operand_shape = (
            operator_named("RESHAPE"),
            shape_of(self.input),
            shape_of(operand),
        )
        after = _axes_after(len(shape), len(operand_shape), axis)
        start, end, ones = len(shape) - after - len(operand_shape), len(shape) - after, (1,) * after
        if operand_shape != shape[start:end]:
            # Dynamic dimensions may differ, and then RESHAPE fails.
            sizes = Sizes(b, self.input)
            target = sizes((*sizes.shape[start:end], *ones))
            return b.add(reshape, operand, target, allow_zero=True)
        return b.add(reshape, operand, (0,) * len(operand_shape) + ones) if after else operand


@operator("BIAS_ADD")
class BiasAdd(Affine):
    """`output = input + bias`, where the bias has rank 1 and runs along `axis` of the input.

    A negative axis counts from the end. Integers wrap around on overflow.
    """

    __slots__ = ()
    bias = tensor(NUMBERS, like="input")
    axis = integer(-1)

    def infer_shape(self) -> Shape:
        axes = len(shape_of(self.bias))
        if axes != 1:
            raise ValueError(f"bias: has {axes} axes, not 1")
        self.check_along("bias", self.bias, self.axis)
        return shape_of(self.input)

    def reference(self, input: Array, bias: Array) -> Array:
        return input + _spread(bias, input.ndim, self.axis)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Add, self.input, self.align(b, self.bias, self.axis))


@operator("SCALE")
class Scale(Affine):
    """`output = input * scale + bias`; scale and bias run along the input's axes from `axis` on.

    Scale and bias have one or more axes, of the same sizes as these input axes, and are repeated
    along the others; the bias is optional. A negative axis counts from the end. Integers wrap
    around on overflow. The activation `fuse_code` is applied to the result.
    """

    __slots__ = ()
    scale = tensor(NUMBERS, like="input")
    bias = optional_tensor(NUMBERS, like="input")
    axis = integer()
    fuse_code = fuse()

    def infer_shape(self) -> Shape:
        for slot, operand in (("scale", self.scale), ("bias", self.bias)):
            if operand:
                self.check_along(slot, operand, self.axis)
        return shape_of(self.input)

    def reference(self, input: Array, scale: Array, bias: Array | None) -> Array:
        scaled = input * _spread(scale, input.ndim, self.axis)
        return scaled if bias is None else scaled + _spread(bias, input.ndim, self.axis)

    def decompose(self, b: Builder) -> Operand:
        scaled = b.add(Mul, self.input, self.align(b, self.scale, self.axis))
        return b.add(Add, scaled, self.align(b, self.bias, self.axis)) if self.bias else scaled


def _axes_after(rank: int, laid_rank: int, axis: int) -> int:
    """Return the number of input axes after those that a tensor is aligned to."""
    return rank - axis % max(rank, 1) - laid_rank


def _spread(array: Array, rank: int, axis: int) -> Array:
    """Return an array reshaped so that it broadcasts to an input."""
    return array.reshape(array.shape + (1,) * _axes_after(rank, array.ndim, axis))


@operator("FLOOR_DIV")
class FloorDiv(Binary):
    """`output = floor(input0 / input1)`, with NumPy broadcasting.

    For reals the quotient is first rounded to the element type, so 1 by 0.1 is 10; division by 0
    gives an infinity or NaN, which stays. Integers are divided exactly and rounded downwards;
    division by 0 gives 0, and the smallest integer divided by -1 gives itself.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        if input0.dtype.kind in "iu":
            return np.floor_divide(input0, input1)
        return np.floor(np.divide(input0, input1))

    def decompose(self, b: Builder) -> Operand:
        quotient = b.add(Div, self.input0, self.input1)
        if self.input0.type.element_type in FLOATS:
            return b.add(operator_named("FLOOR"), quotient)
        zero = b.constant(np.zeros((), self.input0.type.element_type.dtype))
        rest = b.add(Mod, self.input0, self.input1)
        is_inexact = b.add(operator_named("NOT_EQUAL"), rest, zero)
        signs = (b.add(operator_named("LESS"), o, zero) for o in (self.input0, self.input1))
        rounded_up = b.add(operator_named("AND"), is_inexact, b.add(operator_named("XOR"), *signs))
        one = b.add(operator_named("CAST"), rounded_up, self.input0.type.element_type)
        return b.add(Sub, quotient, one)


@operator("MOD", core=True)
class Mod(Broadcast):
    """The remainder of `input0 / input1`, with NumPy broadcasting.

    It is exact: `input0 - n * input1` for an integer `n`. With `fmod`, `n` is the quotient rounded
    towards zero, and the remainder has the sign of `input0`. Without, `n` is rounded downwards, and
    the remainder has the sign of `input1`; so a finite `input0` by an infinite `input1` gives
    `input0` or, if the signs differ, that infinity. Division by 0 gives 0 for integers and NaN for
    reals; an infinite `input0` gives NaN. A remainder of reals is unspecified if the quotient
    exceeds 1 divided by the spacing of the element type at 1 (in float32, 2 ** 23).
    """

    __slots__ = ()
    fmod = flag(False)

    def infer_shape_value(self) -> Sequence[Dim]:
        return shape_value_by_pairs(self, _remainder)

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.fmod(input0, input1) if self.fmod else np.mod(input0, input1)
