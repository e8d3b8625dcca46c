"""Trigonometric and hyperbolic functions and their inverses, element by element."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, Operand
from crosschip.ops.comparison import Equal
from crosschip.ops.elementwise import Add, Div, Max, Min, Mul, Sub, number
from crosschip.ops.faces import NNAdapter, NNRt
from crosschip.ops.logical import Where
from crosschip.ops.operator import operator, operator_named
from crosschip.ops.unary import (
    Abs,
    Exp,
    Log,
    Reciprocal,
    Sign,
    Sqrt,
    Square,
    Unary,
    examples_in,
)


@operator("SIN", nnadapter=NNAdapter(75), nnrt=(NNRt(86, "SIN"),), onnx=("Sin",), core=True)
class Sin(Unary):
    """The sine of an angle in radians; NaN of an infinity."""

    __slots__ = ()
    examples = examples_in(-7, 7)

    def reference(self, input: Array) -> Array:
        return np.sin(input)


@operator("COS", nnadapter=NNAdapter(16), nnrt=(NNRt(79, "COS"),), onnx=("Cos",), core=True)
class Cos(Unary):
    """The cosine of an angle in radians; NaN of an infinity."""

    __slots__ = ()
    examples = examples_in(-7, 7)

    def reference(self, input: Array) -> Array:
        return np.cos(input)


@operator("TAN", onnx=("Tan",))
class Tan(Unary):
    """The tangent of an angle in radians; NaN of an infinity."""

    __slots__ = ()
    examples = examples_in(-1.4, 1.4)

    def reference(self, input: Array) -> Array:
        return np.tan(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Div, b.add(Sin, self.input), b.add(Cos, self.input))


@operator("ASIN", onnx=("Asin",))
class Asin(Unary):
    """The angle from -π/2 to π/2 whose sine the input is; NaN where it is not in [-1, 1]."""

    __slots__ = ()
    examples = examples_in(-1, 1)

    def reference(self, input: Array) -> Array:
        return np.arcsin(input)

    def decompose(self, b: Builder) -> Operand:
        # (1 - x) * (1 + x) keeps digits that 1 - x² loses near 1.
        below, above = b.add(Sub, number(1, self.input), self.input), b.add(Add, self.input, 1.0)
        cosine = b.add(Sqrt, b.add(Mul, below, above))
        return b.add(Atan, b.add(Div, self.input, cosine))


@operator("ACOS", onnx=("Acos",))
class Acos(Unary):
    """The angle from 0 to π whose cosine the input is; NaN where it is not in [-1, 1]."""

    __slots__ = ()
    examples = examples_in(-1, 1)

    def reference(self, input: Array) -> Array:
        return np.arccos(input)

    def decompose(self, b: Builder) -> Operand:
        below, above = b.add(Sub, number(1, self.input), self.input), b.add(Add, self.input, 1.0)
        half = b.add(Atan, b.add(Sqrt, b.add(Div, below, above)))
        return b.add(Mul, half, 2.0)


@operator("ATAN", onnx=("Atan",), core=True)
class Atan(Unary):
    """The angle from -π/2 to π/2 whose tangent the input is; those two of the infinities."""

    __slots__ = ()
    examples = examples_in(-3, 3)

    def reference(self, input: Array) -> Array:
        return np.arctan(input)


@operator("SINH", onnx=("Sinh",))
class Sinh(Unary):
    """`output = (e ** input - e ** -input) / 2`."""

    __slots__ = ()
    examples = examples_in(-3, 3)

    def reference(self, input: Array) -> Array:
        return np.sinh(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, b.add(operator_named("TANH"), self.input), b.add(Cosh, self.input))


@operator("COSH", onnx=("Cosh",))
class Cosh(Unary):
    """`output = (e ** input + e ** -input) / 2`."""

    __slots__ = ()
    examples = examples_in(-3, 3)

    def reference(self, input: Array) -> Array:
        return np.cosh(input)

    def decompose(self, b: Builder) -> Operand:
        # The square of e ** (x / 2), halved first, because it may be beyond the element type.
        power = b.add(Exp, b.add(Mul, b.add(Abs, self.input), 0.5))
        half = b.add(Mul, power, 0.5)
        inverse = b.add(Div, number(0.5, self.input), power)
        return b.add(Add, b.add(Mul, half, power), b.add(Div, inverse, power))


@operator("ASINH", onnx=("Asinh",))
class Asinh(Unary):
    """`output = log(input + sqrt(input² + 1))`, the inverse of `SINH`."""

    __slots__ = ()
    examples = examples_in(-9, 9)

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


@operator("ACOSH", onnx=("Acosh",))
class Acosh(Unary):
    """`output = log(input + sqrt(input² - 1))`, at least 0; NaN where the input is less than 1."""

    __slots__ = ()
    examples = examples_in(1, 9)

    def reference(self, input: Array) -> Array:
        return np.arccosh(input)

    def decompose(self, b: Builder) -> Operand:
        below, above = b.add(Sub, self.input, 1.0), b.add(Add, self.input, 1.0)
        root = b.add(Mul, b.add(Sqrt, below), b.add(Sqrt, above))
        return log_1_plus(b, b.add(Add, below, root))


@operator("ATANH", onnx=("Atanh",))
class Atanh(Unary):
    """`output = log((1 + input) / (1 - input)) / 2`.

    An infinity of 1 and -1, NaN where the input is not between them.
    """

    __slots__ = ()
    examples = examples_in(-0.9, 0.9)

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
