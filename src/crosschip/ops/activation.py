"""Activation functions."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, Operand, Quantization, Shape
from crosschip.ir.types import NUMBERS
from crosschip.ops.comparison import Less
from crosschip.ops.elementwise import (
    INT8,
    INT32,
    Add,
    Clip,
    Div,
    Elementwise,
    Mul,
    Sub,
    number,
)
from crosschip.ops.examples import example, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.logical import Where
from crosschip.ops.operator import operator, operator_named, shape_of
from crosschip.ops.shapes import axis_in, broadcast
from crosschip.ops.slots import integer, real, tensor
from crosschip.ops.unary import (
    Abs,
    Exp,
    Log,
    Neg,
    Reciprocal,
    Unary,
    examples_in,
)


class Activation(Unary):
    """Base of functions of reals that networks use between their layers."""

    __slots__ = ()
    examples = (
        *examples_in(-4, 4),
        example(
            input=random(2, 3, dtype=INT8, low=-128, high=128, quantization=Quantization((0.05,))),
            quantization=Quantization((0.05,)),
        ),
    )


@operator(
    "RELU",
    nnadapter=NNAdapter(65),
    nnrt=(NNRt(47, "RELU"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Relu",),
)
class Relu(Elementwise):
    """`output = max(0, input)`; NaN stays NaN."""

    __slots__ = ()
    input = tensor(NUMBERS)
    examples = (
        *Activation.examples,
        example(input=random(2, 3, dtype=INT32, low=-9, high=9)),
    )

    def reference(self, input: Array) -> Array:
        return np.maximum(input, 0)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Clip, self.input, min=0)


@operator("RELU6", nnadapter=NNAdapter(66), nnrt=(NNRt(48, "RELU6"),), hdi=(NodeType.ACTIVATION,))
class Relu6(Activation):
    """`output = min(6, max(0, input))`; NaN stays NaN."""

    __slots__ = ()
    examples = (*Activation.examples, *examples_in(-9, 9))

    def reference(self, input: Array) -> Array:
        return np.clip(input, 0, 6)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Clip, self.input, 0, 6)


@operator(
    "LEAKY_RELU",
    nnadapter=NNAdapter(40),
    nnrt=(NNRt(74, "LEAKY_RELU", parameters={"NEGATIVE_SLOPE": "alpha"}),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("LeakyRelu",),
)
class LeakyRelu(Activation):
    """`output = input` where `input >= 0`, else `alpha * input`; NaN stays NaN."""

    __slots__ = ()
    alpha = real(0.01)
    examples = (
        *Activation.examples,
        example(input=random(2, 3), alpha=-0.5),
        example(input=random(2, 3), alpha=1.5),
    )

    def reference(self, input: Array, alpha: float) -> Array:
        return np.where(input >= 0, input, alpha * input)

    def decompose(self, b: Builder) -> Operand:
        is_negative = b.add(Less, self.input, 0.0)
        return b.add(Where, is_negative, b.add(Mul, self.input, self.alpha), self.input)


@operator(
    "PRELU",
    nnadapter=NNAdapter(59),
    nnrt=(NNRt(46, "PRELU", ("input", "slope"), translation="slopes run along the last axis"),),
    hdi=(NodeType.PRELU_FUSION,),
    onnx=("PRelu",),
)
class PRelu(Elementwise):
    """`output = input` where `input >= 0`, else `slope * input`; NaN stays NaN.

    A slope of one axis runs along axis 1 of the input, the channels, if that has two axes or more.
    Any other slope is broadcast to the input as NumPy does, which it must not change the shape of.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    slope = tensor(NUMBERS, like="input")
    examples = (
        example(input=random(2, 3, 4, 5), slope=random(3)),
        example(input=random(2, 3, 4, 5), slope=random(1)),
        example(input=random(2, 3, 4), slope=random(2, 3, 4)),
        example(input=random(2, 3, 4), slope=random(3, 1)),
        example(input=random(4), slope=random(4)),
        example(input=random(2, 3, 4), slope=np.array([0.1, -0.2, 1.5], np.float32)),
        example(
            input=random(
                2, 3, 4, dtype=INT8, low=-128, high=128, quantization=Quantization((0.1,))
            ),
            slope=np.array([0.1, 0.2, 0.3], np.float32),
            quantization=Quantization((0.1,)),
        ),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        slope = shape_of(self.slope)
        laid = slope + (1,) * self._axes_after(len(shape), len(slope))
        try:
            stretched = broadcast(shape, laid)
        except ValueError:
            stretched = ()
        grown = any(
            isinstance(new, int) and isinstance(old, int) and new != old
            for new, old in zip(stretched, shape, strict=False)
        )
        if grown or len(stretched) != len(shape):
            sizes = ", ".join(map(str, slope))
            raise ValueError(f"slope: its shape [{sizes}] cannot be broadcast to the input's")
        return shape

    def reference(self, input: Array, slope: Array) -> Array:
        after = self._axes_after(input.ndim, slope.ndim)
        return np.where(input >= 0, input, slope.reshape(slope.shape + (1,) * after) * input)

    def decompose(self, b: Builder) -> Operand:
        slope = self.slope
        after = self._axes_after(len(shape_of(self.input)), len(shape_of(slope)))
        if after:
            slope = b.add(operator_named("RESHAPE"), slope, (-1,) + (1,) * after)
        is_negative = b.add(Less, self.input, number(0, self.input))
        return b.add(Where, is_negative, b.add(Mul, self.input, slope), self.input)

    @staticmethod
    def _axes_after(rank: int, slope_rank: int) -> int:
        """How many axes come after the one that a slope runs along."""
        return max(0, rank - 2) if slope_rank == 1 else 0


@operator(
    "SIGMOID",
    nnadapter=NNAdapter(74),
    nnrt=(NNRt(28, "SIGMOID"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Sigmoid",),
)
class Sigmoid(Activation):
    """`output = 1 / (1 + e ** -input)`, between 0 and 1."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return 1 / (1 + np.exp(-input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Reciprocal, b.add(Add, b.add(Exp, b.add(Neg, self.input)), 1.0))


@operator(
    "TANH",
    nnadapter=NNAdapter(86),
    nnrt=(NNRt(39, "TANH"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Tanh",),
    core=True,
)
class Tanh(Activation):
    """`output = (e ** input - e ** -input) / (e ** input + e ** -input)`, between -1 and 1."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.tanh(input)


@operator(
    "HARD_SIGMOID",
    nnadapter=NNAdapter(36),
    nnrt=(NNRt(107, "HARD_SIGMOID", translation="alpha is 1/6, beta 0.5"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("HardSigmoid",),
)
class HardSigmoid(Activation):
    """`output = max(0, min(1, alpha * input + beta))`; NaN stays NaN."""

    __slots__ = ()
    alpha = real(0.2)
    beta = real(0.5)
    examples = (*Activation.examples, example(input=random(2, 3), alpha=1 / 6, beta=0.25))

    def reference(self, input: Array, alpha: float, beta: float) -> Array:
        return np.clip(alpha * input + beta, 0, 1)

    def decompose(self, b: Builder) -> Operand:
        line = b.add(Add, b.add(Mul, self.input, self.alpha), self.beta)
        return b.add(Clip, line, 0, 1)


@operator(
    "HARD_SWISH",
    nnadapter=NNAdapter(37),
    nnrt=(NNRt(17, "HSWISH"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("HardSwish",),
)
class HardSwish(Activation):
    """`output = input * max(0, min(1, alpha * input + beta))`; NaN stays NaN."""

    __slots__ = ()
    alpha = real(1 / 6)
    beta = real(0.5)
    examples = (*Activation.examples, example(input=random(2, 3), alpha=0.2, beta=0.25))

    def reference(self, input: Array, alpha: float, beta: float) -> Array:
        return input * np.clip(alpha * input + beta, 0, 1)

    def decompose(self, b: Builder) -> Operand:
        alpha, beta = (self.operand(slot) for slot in ("alpha", "beta"))
        gate = b.add(HardSigmoid, self.input, alpha or self.alpha, beta or self.beta)
        return b.add(Mul, self.input, gate)


@operator(
    "SWISH",
    nnadapter=NNAdapter(85),
    nnrt=(NNRt(105, "SWISH"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Swish",),
)
class Swish(Activation):
    """`output = input / (1 + e ** -input)`, also known as SiLU; NaN of -infinity."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return input / (1 + np.exp(-input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, self.input, b.add(Sigmoid, self.input))


@operator("SOFTSIGN", hdi=(NodeType.ACTIVATION,), onnx=("Softsign",))
class Softsign(Activation):
    """`output = input / (1 + |input|)`, between -1 and 1; NaN of an infinity."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return input / (1 + np.abs(input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Div, self.input, b.add(Add, b.add(Abs, self.input), 1.0))


@operator("THRESHOLDED_RELU", hdi=(NodeType.ACTIVATION,), onnx=("ThresholdedRelu",))
class ThresholdedRelu(Activation):
    """`output = input` where `input > alpha`, else 0, of NaN, too."""

    __slots__ = ()
    alpha = real(1.0)
    examples = (*Activation.examples, example(input=random(2, 5), alpha=-0.5))

    def reference(self, input: Array, alpha: float) -> Array:
        return np.where(input > alpha, input, np.zeros_like(input))

    def decompose(self, b: Builder) -> Operand:
        is_above = b.add(Less, number(self.alpha, self.input), self.input)
        return b.add(Where, is_above, self.input, number(0, self.input))


@operator("SHRINK", onnx=("Shrink",))
class Shrink(Activation):
    """`input + bias` where `input < -lambd`, `input - bias` where `input > lambd`, else 0.

    The first that is true holds; of NaN, neither is.
    """

    __slots__ = ()
    bias = real(0.0)
    lambd = real(0.5)
    examples = (
        *Activation.examples,
        example(input=random(2, 5), bias=1.5, lambd=1.0),
        example(input=random(2, 5), bias=0.5, lambd=-0.5),
    )

    def reference(self, input: Array, bias: float, lambd: float) -> Array:
        upper = np.where(input > lambd, input - bias, np.zeros_like(input))
        return np.where(input < -lambd, input + bias, upper)

    def decompose(self, b: Builder) -> Operand:
        x = self.input
        is_below = b.add(Less, x, -self.lambd)
        is_above = b.add(Less, number(self.lambd, x), x)
        upper = b.add(Where, is_above, b.add(Sub, x, self.bias), number(0, x))
        return b.add(Where, is_below, b.add(Add, x, self.bias), upper)


class AlongAxis(Activation):
    """Base of functions of all the numbers along an axis; axis -1 is the last one."""

    __slots__ = ()
    axis = integer(1)
    examples = (
        example(input=random(2, 3, 4)),
        example(input=random(2, 3, low=-99, high=99), axis=-1),
        example(input=random(5), axis=0),
        example(
            input=random(2, 6, dtype=INT8, low=-128, high=128, quantization=Quantization((0.05,))),
            quantization=Quantization((0.05,)),
        ),
    )

    def infer_shape(self) -> Shape:
        axis_in(self.axis, len(shape_of(self.input)))
        return shape_of(self.input)

    def below_greatest(self, b: Builder) -> Operand:
        """How far each number is below the greatest along the axis, which no power overflows of."""
        greatest = b.add(operator_named("REDUCE_MAX"), self.input, (self.axis,), True)
        return b.add(Sub, self.input, greatest)


@operator(
    "SOFTMAX",
    nnadapter=NNAdapter(77),
    nnrt=(NNRt(30, "SOFTMAX", parameters={"AXIS": "axis"}),),
    hdi=(NodeType.SOFTMAX,),
    onnx=("Softmax",),
)
class Softmax(AlongAxis):
    """`output = e ** input / sum(e ** input)` along `axis`; the greatest input is taken off first.

    Where that is infinite, or there is a NaN, all is NaN.
    """

    __slots__ = ()

    def reference(self, input: Array, axis: int) -> Array:
        powers = np.exp(input - input.max(axis, keepdims=True, initial=-np.inf))
        return powers / powers.sum(axis, keepdims=True)

    def decompose(self, b: Builder) -> Operand:
        powers = b.add(Exp, self.below_greatest(b))
        total = b.add(operator_named("REDUCE_SUM"), powers, (self.axis,), True)
        return b.add(Div, powers, total)


@operator(
    "LOG_SOFTMAX",
    nnadapter=NNAdapter(44),
    nnrt=(NNRt(95, "LOG_SOFTMAX", parameters={"AXIS": "axis"}),),
    onnx=("LogSoftmax",),
)
class LogSoftmax(AlongAxis):
    """`output = input - log(sum(e ** input))` along `axis`; the greatest is taken off first.

    Where that is infinite, or there is a NaN, all is NaN.
    """

    __slots__ = ()

    def reference(self, input: Array, axis: int) -> Array:
        below = input - input.max(axis, keepdims=True, initial=-np.inf)
        return below - np.log(np.exp(below).sum(axis, keepdims=True))

    def decompose(self, b: Builder) -> Operand:
        below = self.below_greatest(b)
        total = b.add(operator_named("REDUCE_SUM"), b.add(Exp, below), (self.axis,), True)
        return b.add(Sub, below, b.add(Log, total))
