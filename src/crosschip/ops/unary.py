"""Functions of one number, element by element: signs, powers, logarithms, rounding."""

from __future__ import annotations

from math import erf
from typing import ClassVar

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization
from crosschip.ir.types import FLOATS, NUMBERS
from crosschip.ops.comparison import Equal, Less, NotEqual
from crosschip.ops.elementwise import (
    FLOAT16,
    INT8,
    INT16,
    INT32,
    UINT8,
    Div,
    Elementwise,
    Mul,
    Sub,
    number,
)
from crosschip.ops.examples import Example, example, given, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.logical import Or, Where
from crosschip.ops.operator import operator
from crosschip.ops.slots import flag, tensor


class Unary(Elementwise):
    """Base of functions of one real."""

    __slots__ = ()
    input = tensor(FLOATS)


def examples_in(low: float, high: float) -> tuple[Example, ...]:
    """Uses of a function on reals from `low` to `high`: of several ranks, narrow, quantized."""
    least = min(low, 0.0)
    scale = (high - least) / 255
    zero_point = round(-least / scale)
    return (
        example(input=random(2, 3, 4, low=low, high=high)),
        example(input=random(low=low, high=high)),
        example(input=random(7, dtype=FLOAT16, low=low, high=high)),
        example(
            input=random(
                *(3, 5),
                dtype=UINT8,
                low=zero_point + max(low, 0.0) / scale,
                high=256,
                quantization=Quantization((scale,), (zero_point,)),
            ),
            quantization=Quantization((0.05,), (100,)),
        ),
    )


INTEGERS_TOO = (
    *examples_in(-3, 3),
    example(input=random(2, 3, dtype=INT32, low=-9, high=9)),
    example(input=given(np.array([-128, -1, 0, 127], np.int8))),
    example(input=given(np.array([0, 1, 255], np.uint8))),
    example(
        input=random(2, 3, dtype=INT8, low=-128, high=128, quantization=Quantization((0.05,))),
        quantization=Quantization((0.1,)),
    ),
    example(
        input=random(2, 3, dtype=INT16, low=-999, high=999, quantization=Quantization((0.01,))),
        quantization=Quantization((0.02,)),
    ),
)
"""Uses of a function of integers, too."""


@operator(
    "ABS",
    nnadapter=NNAdapter(0),
    nnrt=(NNRt(58, "ABS"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Abs",),
)
class Abs(Elementwise):
    """`output = |input|`; the least integer of a type has no positive one, and gives itself."""

    __slots__ = ()
    input = tensor(NUMBERS)
    examples = INTEGERS_TOO

    def reference(self, input: Array) -> Array:
        return np.abs(input)

    def decompose(self, b: Builder) -> Operand:
        zero = number(0, self.input)
        is_positive = b.add(Less, zero, self.input)
        return b.add(Where, is_positive, self.input, b.add(Sub, zero, self.input))


@operator("NEG", nnrt=(NNRt(84, "NEG"),), onnx=("Neg",))
class Neg(Elementwise):
    """`output = -input`; integers wrap around, so that the least one gives itself."""

    __slots__ = ()
    input = tensor(NUMBERS)
    examples = INTEGERS_TOO

    def reference(self, input: Array) -> Array:
        return np.negative(input)

    def decompose(self, b: Builder) -> Operand:
        # From -0, because 0 - 0 is 0, but the negative of 0 is -0.
        return b.add(Sub, number(-0.0, self.input), self.input)


@operator("SIGN", hdi=(NodeType.ACTIVATION,), onnx=("Sign",))
class Sign(Elementwise):
    """1 where the input is greater than 0, -1 where it is less, 0 where it is 0; NaN stays NaN."""

    __slots__ = ()
    input = tensor(NUMBERS)
    examples = INTEGERS_TOO

    def reference(self, input: Array) -> Array:
        return np.sign(input)

    def decompose(self, b: Builder) -> Operand:
        zero = number(0, self.input)
        is_positive, is_negative = b.add(Less, zero, self.input), b.add(Less, self.input, zero)
        up_to_1 = b.add(Where, is_positive, number(1, self.input), self.input)
        return b.add(Where, is_negative, number(-1, self.input), up_to_1)


@operator("SQUARE", nnadapter=NNAdapter(80), nnrt=(NNRt(63, "SQUARE"),))
class Square(Elementwise):
    """`output = input * input`; integers wrap around on overflow."""

    __slots__ = ()
    input = tensor(NUMBERS)
    examples = INTEGERS_TOO

    def reference(self, input: Array) -> Array:
        return np.square(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, self.input, self.input)


@operator("SQRT", nnrt=(NNRt(33, "SQRT"),), hdi=(NodeType.SQRT,), onnx=("Sqrt",), core=True)
class Sqrt(Unary):
    """The square root, rounded as IEEE 754 says; NaN of what is less than 0, and -0 of -0."""

    __slots__ = ()
    examples = examples_in(0, 9)

    def reference(self, input: Array) -> Array:
        return np.sqrt(input)


@operator("RSQRT", nnadapter=NNAdapter(72), nnrt=(NNRt(44, "RSQRT"),), hdi=(NodeType.RSQRT,))
class Rsqrt(Unary):
    """`output = 1 / sqrt(input)`; an infinity of 0, NaN of what is less."""

    __slots__ = ()
    examples = examples_in(0.1, 9)

    def reference(self, input: Array) -> Array:
        return np.reciprocal(np.sqrt(input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Reciprocal, b.add(Sqrt, self.input))


@operator("RECIPROCAL", nnrt=(NNRt(85, "RECIPROCAL"),), onnx=("Reciprocal",))
class Reciprocal(Unary):
    """`output = 1 / input`; an infinity of the same sign of 0."""

    __slots__ = ()
    examples = examples_in(0.1, 9)

    def reference(self, input: Array) -> Array:
        return np.reciprocal(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Div, number(1, self.input), self.input)


@operator(
    "EXP",
    nnadapter=NNAdapter(22),
    nnrt=(
        NNRt(
            *(60, "EXP", ("input",), {"BASE": "", "SCALE": "", "SHIFT": ""}),
            "base ** (scale * input + shift), base -1 standing for e: the exponent times ln(base)",
        ),
    ),
    onnx=("Exp",),
    core=True,
)
class Exp(Unary):
    """`output = e ** input`; an infinity where that is beyond the element type, 0 of -infinity."""

    __slots__ = ()
    examples = examples_in(-3, 3)

    def reference(self, input: Array) -> Array:
        return np.exp(input)


@operator("LOG", nnadapter=NNAdapter(43), nnrt=(NNRt(80, "LOG"),), onnx=("Log",), core=True)
class Log(Unary):
    """The natural logarithm; -infinity of 0, NaN of what is less."""

    __slots__ = ()
    examples = examples_in(0.1, 9)

    def reference(self, input: Array) -> Array:
        return np.log(input)


@operator("ERF", nnrt=(NNRt(59, "ERF"),), onnx=("Erf",), core=True)
class Erf(Unary):
    """The error function, `2 / sqrt(pi)` times the integral of `e ** -t²` from 0 to the input."""

    __slots__ = ()
    examples = examples_in(-3, 3)

    def reference(self, input: Array) -> Array:
        return error_function(input)


@operator("FLOOR", nnadapter=NNAdapter(27), nnrt=(NNRt(93, "FLOOR"),), onnx=("Floor",), core=True)
class Floor(Unary):
    """The greatest whole number that is not above the input; infinities and NaN stay."""

    __slots__ = ()
    examples = (*examples_in(-9, 9), example(input=given([-1.5, -0.0, 0.5, 2.0, np.inf])))

    def reference(self, input: Array) -> Array:
        return np.floor(input)


@operator("CEIL", nnrt=(NNRt(90, "CEIL"),), onnx=("Ceil",))
class Ceil(Unary):
    """The least whole number that is not below the input; infinities and NaN stay."""

    __slots__ = ()
    examples = Floor.examples

    def reference(self, input: Array) -> Array:
        return np.ceil(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Neg, b.add(Floor, b.add(Neg, self.input)))


@operator("ROUND", nnrt=(NNRt(102, "ROUND"),), onnx=("Round",), core=True)
class Round(Unary):
    """The nearest whole number, the even one of two; infinities and NaN stay."""

    __slots__ = ()
    examples = (*examples_in(-9, 9), example(input=given([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])))

    def reference(self, input: Array) -> Array:
        return np.rint(input)


class Predicate(Unary):
    """Base of questions about one real; the results are true or false."""

    __slots__ = ()
    examples: ClassVar[tuple[Example, ...]] = (
        example(input=given([np.nan, np.inf, -np.inf, 0.0, 3e38])),
        example(input=given(np.array([np.nan, np.inf, -np.inf, 65504], np.float16))),
        example(input=random(2, 3, 4)),
    )

    def infer_element_type(self) -> ElementType:
        return ElementType.BOOL


@operator("IS_NAN", onnx=("IsNaN",))
class IsNaN(Predicate):
    """Whether the input is not a number."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.isnan(input)

    def decompose(self, b: Builder) -> Operand:
        return b.add(NotEqual, self.input, self.input)


@operator("IS_INF", onnx=("IsInf",))
class IsInf(Predicate):
    """Whether the input is infinite, of a sign for which `detect_…` says that it counts."""

    __slots__ = ()
    detect_negative = flag(True)
    detect_positive = flag(True)
    examples = (
        *Predicate.examples,
        *(
            dict(Predicate.examples[0], detect_negative=negative, detect_positive=positive)
            for negative, positive in ((False, True), (True, False), (False, False))
        ),
    )

    def reference(self, input: Array, detect_negative: bool, detect_positive: bool) -> Array:
        negative, positive = np.isneginf(input), np.isposinf(input)
        return (negative & detect_negative) | (positive & detect_positive)

    def decompose(self, b: Builder) -> Operand:
        # NaN equals nothing.
        negative = -np.inf if self.detect_negative else np.nan
        positive = np.inf if self.detect_positive else np.nan
        return b.add(Or, *(b.add(Equal, self.input, sign) for sign in (negative, positive)))


def error_function(x: Array) -> Array:
    """The error function to the last bits of float64, which no sum of few terms gives."""
    return np.asarray(np.frompyfunc(erf, 1, 1)(x.astype(np.float64)), np.float64)
