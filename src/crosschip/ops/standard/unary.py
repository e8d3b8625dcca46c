"""Functions of one number, element by element.

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
    """`output = |input|`; the least integer of a type has no positive one, and gives itself."""

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
    """`output = -input`; integers wrap around, so that the least one gives itself."""

    __slots__ = ()
    input = tensor(NUMBERS)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return np.negative(input)

    def decompose(self, b: Builder) -> Operand:
        # From -0, because 0 - 0 is 0, but the negative of 0 is -0.
        return b.add(Sub, number(-0.0, self.input), self.input)


@operator("SIGN")
class Sign(Elementwise):
    """1 where the input is greater than 0, -1 where it is less, 0 where it is 0; NaN stays NaN."""

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
    """The square root, rounded as IEEE 754 says; NaN of what is less than 0, and -0 of -0."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.sqrt(input)


@operator("RSQRT")
class Rsqrt(Unary):
    """`output = 1 / sqrt(input)`; an infinity of 0, NaN of what is less."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.reciprocal(np.sqrt(input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Reciprocal, b.add(Sqrt, self.input))


@operator("RECIPROCAL")
class Reciprocal(Unary):
    """`output = 1 / input`; an infinity of the same sign of 0."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.reciprocal(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Div, number(1, self.input), self.input)


@operator("EXP", core=True)
class Exp(Unary):
    """`output = e ** input`; an infinity where that is beyond the element type, 0 of -infinity.

    Where it is more than half of the greatest number of the element type, it may be an infinity.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.exp(input)


@operator("LOG", core=True)
class Log(Unary):
    """The natural logarithm; -infinity of 0, NaN of what is less."""

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
    """The greatest whole number that is not above the input; infinities and NaN stay."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.floor(input)


@operator("CEIL")
class Ceil(Unary):
    """The least whole number that is not below the input; infinities and NaN stay."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.ceil(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Neg, b.add(Floor, b.add(Neg, self.input)))


@operator("ROUND", core=True)
class Round(Unary):
    """The nearest whole number, the even one of two; infinities and NaN stay."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.rint(input)


class Predicate(Unary):
    """Base of questions about one real; the results are true or false."""

    __slots__ = ()

    def infer_element_type(self) -> ElementType:
        return ElementType.BOOL


@operator("IS_NAN")
class IsNaN(Predicate):
    """True where the input is not a number."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.isnan(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(NotEqual, self.input, self.input)


@operator("IS_INF")
class IsInf(Predicate):
    """True where the input is infinite, of a sign for which `detect_…` says that it counts."""

    __slots__ = ()
    detect_negative = flag(True)
    detect_positive = flag(True)

    def reference(self, input: Array) -> Array:
        negative, positive = np.isneginf(input), np.isposinf(input)
        return (negative & self.detect_negative) | (positive & self.detect_positive)

    def decompose(self, b: Builder) -> Operand:
        # NaN equals nothing.
        negative = -np.inf if self.detect_negative else np.nan
        positive = np.inf if self.detect_positive else np.nan
        return b.add(Or, *(b.add(Equal, self.input, sign) for sign in (negative, positive)))


@operator("SIN", core=True)
class Sin(Unary):
    """The sine of an angle in radians; NaN of an infinity."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.sin(input)


@operator("COS", core=True)
class Cos(Unary):
    """The cosine of an angle in radians; NaN of an infinity."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.cos(input)


@operator("TAN")
class Tan(Unary):
    """The tangent of an angle in radians; NaN of an infinity."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.tan(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Div, b.add(Sin, self.input), b.add(Cos, self.input))


@operator("ASIN")
class Asin(Unary):
    """The angle from -π/2 to π/2 whose sine the input is; NaN where it is not in [-1, 1]."""

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
    """The angle from 0 to π whose cosine the input is; NaN where it is not in [-1, 1]."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.arccos(input)

    def decompose(self, b: Builder) -> Operand:
        below, above = b.add(Sub, number(1, self.input), self.input), b.add(Add, self.input, 1.0)
        half = b.add(Atan, b.add(Sqrt, b.add(Div, below, above)))
        return b.add(Mul, half, 2.0)


@operator("ATAN", core=True)
class Atan(Unary):
    """The angle from -π/2 to π/2 whose tangent the input is; those two of the infinities."""

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
        # The square of e ** (x / 2), halved first, because it may be beyond the element type.
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
        # input² + 1 may be beyond the element type; with the greater of |input| and 1 taken out of
        # the root, nothing is.
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

    An infinity of 1 and -1, NaN where the input is not between them.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.arctanh(input)

    def decompose(self, b: Builder) -> Operand:
        twice = b.add(Mul, self.input, 2.0)
        distance = b.add(Div, twice, b.add(Sub, number(1, self.input), self.input))
        return b.add(Mul, log_1_plus(b, distance), 0.5)


def log_1_plus(b: Builder, x: Operand) -> Operand:
    """`log(1 + x)` from core operators, with all digits for a small `x`, too.

    What rounding adds to `1 + x` is taken off again, as far as it counts in the logarithm.
    """
    total = b.add(Add, x, 1.0)
    counted = b.add(Sub, total, 1.0)
    log = b.add(Log, total)
    lost = b.add(Div, b.add(Sub, x, counted), total)
    return b.add(Where, b.add(Equal, counted, x), log, b.add(Add, log, lost))
