"""Elementwise functions of one number.

Signs, powers, logarithms, rounding, trigonometric and hyperbolic functions and their inverses.
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand
from crosschip.ir.types import NUMBERS
from crosschip.ops.definition.kinds import Elementwise, Unary, aligned_row_axis, number
from crosschip.ops.definition.registry import operator, operator_named
from crosschip.ops.definition.slots import flag, tensor
from crosschip.ops.numerics.error_function import error_function
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Less, NotEqual
from crosschip.ops.standard.logical import Or, Where


@operator("ABS")
class Abs(Elementwise):
    """`output = |input|`; the smallest integer of a type gives itself."""

    __slots__ = ()
    input = tensor(NUMBERS)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return np.abs(input)

    def decompose(self, b: Builder) -> Operand:
        zero = number(0, self.input)
        is_positive = b.add(Less, zero, self.input)
        return b.add(Where, is_positive, self.input, b.add(Sub, zero, self.input))


@operator("NEG")
class Neg(Elementwise):
    """`output = -input`; integers wrap around, so the smallest one gives itself."""

    __slots__ = ()
    input = tensor(NUMBERS)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return np.negative(input)

    def decompose(self, b: Builder) -> Operand:
        # From -0, because 0 - 0 is 0, but the negation of 0 is -0.
        return b.add(Sub, number(-0.0, self.input), self.input)


@operator("SIGN")
class Sign(Elementwise):
    """1 where the input is positive, -1 where it is negative, 0 where it is 0; NaN stays NaN."""

    __slots__ = ()
    input = tensor(NUMBERS)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return np.sign(input)

    def decompose(self, b: Builder) -> Operand:
        zero = number(0, self.input)
        is_positive, is_negative = b.add(Less, zero, self.input), b.add(Less, self.input, zero)
        up_to_1 = b.add(Where, is_positive, number(1, self.input), self.input)
        return b.add(Where, is_negative, number(-1, self.input), up_to_1)


@operator("SQUARE")
class Square(Elementwise):
    """`output = input * input`; integers wrap around on overflow."""

    __slots__ = ()
    input = tensor(NUMBERS)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return np.square(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, self.input, self.input)


@operator("SQRT", core=True)
class Sqrt(Unary):
    """The square root, rounded as in IEEE 754; NaN for negative inputs, and -0 for -0."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.sqrt(input)


@operator("RSQRT")
class Rsqrt(Unary):
    """`output = 1 / sqrt(input)`; an infinity for 0, NaN for negative inputs."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.reciprocal(np.sqrt(input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Reciprocal, b.add(Sqrt, self.input))


@operator("RECIPROCAL")
class Reciprocal(Unary):
    """`output = 1 / input`; for 0, an infinity of the same sign."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.reciprocal(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Div, number(1, self.input), self.input)


@operator("EXP", core=True)
class Exp(Unary):
    """`output = e ** input`; an infinity if that overflows the element type, 0 for -infinity.

    A result above half of the largest number of the element type may be an infinity.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.exp(input)


@operator("LOG", core=True)
class Log(Unary):
    """The natural logarithm; -infinity for 0, NaN for negative inputs."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.log(input)


@operator("ERF", core=True)
class Erf(Unary):
    """The error function, `2 / sqrt(pi)` times the integral of `e ** -t²` from 0 to the input."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return error_function(input)


@operator("FLOOR", core=True)
class Floor(Unary):
    """The largest integer not above the input; infinities and NaN stay."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.floor(input)


@operator("CEIL")
class Ceil(Unary):
    """The smallest integer not below the input; infinities and NaN stay."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.ceil(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Neg, b.add(Floor, b.add(Neg, self.input)))


@operator("ROUND", core=True)
class Round(Unary):
    """The nearest integer, ties to even; infinities and NaN stay."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.rint(input)


class Predicate(Unary):
    """Base class of predicates on one real, with boolean results."""

    __slots__ = ()

    def infer_element_type(self) -> ElementType:
        return ElementType.BOOL


@operator("IS_NAN")
class IsNaN(Predicate):
    """True where the input is NaN."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.isnan(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(NotEqual, self.input, self.input)


@operator("IS_INF")
class IsInf(Predicate):
    """True where the input is an infinity of a sign that is enabled by a `detect_…` parameter."""

    __slots__ = ()
    detect_negative = flag(True)
    detect_positive = flag(True)

    def reference(self, input: Array) -> Array:
        negative, positive = np.isneginf(input), np.isposinf(input)
        return (negative & self.detect_negative) | (positive & self.detect_positive)

    def decompose(self, b: Builder) -> Operand:
        # NaN, which stands for a disabled sign, equals nothing.
        negative = -np.inf if self.detect_negative else np.nan
        positive = np.inf if self.detect_positive else np.nan
        return b.add(Or, *(b.add(Equal, self.input, sign) for sign in (negative, positive)))


@operator("SIN", core=True)
class Sin(Unary):
    """The sine of an angle in radians; NaN for infinities."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.sin(input)


@operator("COS", core=True)
class Cos(Unary):
    """The cosine of an angle in radians; NaN for infinities."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.cos(input)


@operator("TAN")
class Tan(Unary):
    """The tangent of an angle in radians; NaN for infinities."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.tan(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Div, b.add(Sin, self.input), b.add(Cos, self.input))


@operator("ASIN")
class Asin(Unary):
    """The arcsine, from -π/2 to π/2; NaN where the input is not in [-1, 1]."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.arcsin(input)

    def decompose(self, b: Builder) -> Operand:
        # (1 - x) * (1 + x) keeps digits that 1 - x² loses near 1.
        below, above = b.add(Sub, number(1, self.input), self.input), b.add(Add, self.input, 1.0)
        cosine = b.add(Sqrt, b.add(Mul, below, above))
        return b.add(Atan, b.add(Div, self.input, cosine))


@operator("ACOS")
class Acos(Unary):
    """The arccosine, from 0 to π; NaN where the input is not in [-1, 1]."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.arccos(input)

    def decompose(self, b: Builder) -> Operand:
        below, above = b.add(Sub, number(1, self.input), self.input), b.add(Add, self.input, 1.0)
        half = b.add(Atan, b.add(Sqrt, b.add(Div, below, above)))
        return b.add(Mul, half, 2.0)


@operator("ATAN", core=True)
class Atan(Unary):
    """The arctangent, from -π/2 to π/2, which it is for infinities."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.arctan(input)


@operator("SINH")
class Sinh(Unary):
    """`output = (e ** input - e ** -input) / 2`."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.sinh(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, b.add(operator_named("TANH"), self.input), b.add(Cosh, self.input))


@operator("COSH")
class Cosh(Unary):
    """`output = (e ** input + e ** -input) / 2`."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.cosh(input)

    def decompose(self, b: Builder) -> Operand:
        # The square of e ** (x / 2), halved first, because the square may overflow.
        power = b.add(Exp, b.add(Mul, b.add(Abs, self.input), 0.5))
        half = b.add(Mul, power, 0.5)
        inverse = b.add(Div, number(0.5, self.input), power)
        return b.add(Add, b.add(Mul, half, power), b.add(Div, inverse, power))


@operator("ASINH")
class Asinh(Unary):
    """`output = log(input + sqrt(input² + 1))`, the inverse of `SINH`."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.arcsinh(input)

    def decompose(self, b: Builder) -> Operand:
        # input² + 1 may overflow; factoring out the maximum of |input| and 1 from the root avoids
        # that.
        size = b.add(Abs, self.input)
        greater, less = b.add(Max, size, 1.0), b.add(Min, size, 1.0)
        root = b.add(Sqrt, b.add(Add, b.add(Square, b.add(Div, less, greater)), 1.0))
        ratio = b.add(Div, less, b.add(Add, root, b.add(Reciprocal, greater)))
        distance = log_1_plus(b, b.add(Add, size, b.add(Mul, size, ratio)))
        return b.add(Mul, b.add(Sign, self.input), distance)


@operator("ACOSH")
class Acosh(Unary):
    """`output = log(input + sqrt(input² - 1))`, at least 0; NaN where the input is less than 1."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.arccosh(input)

    def decompose(self, b: Builder) -> Operand:
        below, above = b.add(Sub, self.input, 1.0), b.add(Add, self.input, 1.0)
        root = b.add(Mul, b.add(Sqrt, below), b.add(Sqrt, above))
        return log_1_plus(b, b.add(Add, below, root))


@operator("ATANH")
class Atanh(Unary):
    """`output = log((1 + input) / (1 - input)) / 2`.

    An infinity for 1 and -1, NaN where the input is not between them.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.arctanh(input)

    def decompose(self, b: Builder) -> Operand:
        twice = b.add(Mul, self.input, 2.0)
        distance = b.add(Div, twice, b.add(Sub, number(1, self.input), self.input))
        return b.add(Mul, log_1_plus(b, distance), 0.5)


def log_1_plus(b: Builder, x: Operand) -> Operand:
    """Build `log(1 + x)` from core operators, with full precision for small `x`.

    The rounding error of `1 + x` is corrected to first order.
    """
    total = b.add(Add, x, 1.0)
    counted = b.add(Sub, total, 1.0)
    log = b.add(Log, total)
    lost = b.add(Div, b.add(Sub, x, counted), total)
    return b.add(Where, b.add(Equal, counted, x), log, b.add(Add, log, lost))
