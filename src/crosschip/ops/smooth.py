"""Smooth activation functions that take the place of RELU."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

from crosschip.ir import Array, Builder, Operand
from crosschip.ops.activation import Activation, Tanh
from crosschip.ops.comparison import Less
from crosschip.ops.elementwise import Add, Div, Max, Min, Mul, number
from crosschip.ops.examples import example, given, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.logical import Where
from crosschip.ops.operator import operator
from crosschip.ops.slots import flag, real
from crosschip.ops.trigonometry import log_1_plus
from crosschip.ops.unary import Abs, Erf, Exp, Neg, error_function


@operator(
    "GELU",
    nnadapter=NNAdapter(31),
    nnrt=(NNRt(56, "GELU", parameters={"APPROXIMATE": "approximate"}),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Gelu",),
)
class Gelu(Activation):
    """`output = input * P(X <= input)` for a standard normal `X`; NaN of -infinity.

    That is `input * (1 + erf(input / sqrt(2))) / 2`; with `approximate`, it is
    `input * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input ** 3))) / 2` instead. See Hendrycks
    and Gimpel, Gaussian Error Linear Units (https://arxiv.org/abs/1606.08415).
    """

    __slots__ = ()
    approximate = flag(False)
    examples = (*Activation.examples, *(dict(e, approximate=True) for e in Activation.examples))

    def reference(self, input: Array, approximate: bool) -> Array:
        wide = input.astype(np.float64)
        if approximate:
            return wide / 2 * (1 + np.tanh(sqrt(2 / pi) * (wide + 0.044715 * wide**3)))
        return wide / 2 * (1 + error_function(wide / sqrt(2)))

    def decompose(self, b: Builder) -> Operand:
        x = self.input
        if self.approximate:
            cube = b.add(Mul, b.add(Mul, x, x), x)
            inner = b.add(Add, x, b.add(Mul, cube, 0.044715))
            curve = b.add(Tanh, b.add(Mul, inner, sqrt(2 / pi)))
        else:
            curve = b.add(Erf, b.add(Mul, x, sqrt(1 / 2)))
        return b.add(Mul, b.add(Mul, x, 0.5), b.add(Add, curve, 1.0))


@operator(
    "SOFTPLUS",
    nnadapter=NNAdapter(78, ("input", "beta", "threshold")),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Softplus",),
)
class Softplus(Activation):
    """`output = log(1 + e ** (beta * input)) / beta`, or `input` if `beta * input > threshold`.

    The power is never computed where it would be beyond the element type.
    """

    __slots__ = ()
    beta = real(1.0)
    threshold = real(20.0)
    examples = (
        *Activation.examples,
        example(input=random(2, 5), beta=2.5, threshold=1.0),
        example(input=given([[-99.0, -20.0, -1.0], [1.0, 20.0, 99.0]]), threshold=np.inf),
    )

    def reference(self, input: Array, beta: float, threshold: float) -> Array:
        scaled = beta * input
        return np.where(scaled > threshold, input, np.logaddexp(0, scaled) / beta)

    def decompose(self, b: Builder) -> Operand:
        scaled = b.add(Mul, self.input, self.beta)
        power = b.add(Exp, b.add(Neg, b.add(Abs, scaled)))
        curve = b.add(Add, b.add(Max, scaled, 0.0), log_1_plus(b, power))
        is_line = b.add(Less, number(self.threshold, scaled), scaled)
        return b.add(Where, is_line, self.input, b.add(Div, curve, self.beta))


@operator("MISH", onnx=("Mish",))
class Mish(Activation):
    """`output = input * tanh(log(1 + e ** input))`; NaN of -infinity."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return input * np.tanh(np.logaddexp(0, input))

    def decompose(self, b: Builder) -> Operand:
        gate = b.add(Tanh, b.add(Softplus, self.input, threshold=np.inf))
        return b.add(Mul, self.input, gate)


@operator("ELU", hdi=(NodeType.ACTIVATION,), onnx=("Elu",))
class Elu(Activation):
    """`output = input` where `input > 0`, else `alpha * (e ** input - 1)`; NaN stays NaN.

    See Clevert et al., Exponential Linear Units (https://arxiv.org/abs/1511.07289).
    """

    __slots__ = ()
    alpha = real(1.0)
    examples = (*Activation.examples, example(input=random(2, 5), alpha=-0.5))

    def reference(self, input: Array, alpha: float) -> Array:
        return np.where(input > 0, input, alpha * np.expm1(input))

    def decompose(self, b: Builder) -> Operand:
        curve = b.add(Mul, exp_minus_1(b, b.add(Min, self.input, 0.0)), self.alpha)
        return b.add(Where, b.add(Less, number(0, self.input), self.input), self.input, curve)


@operator("SELU", hdi=(NodeType.ACTIVATION,), onnx=("Selu",))
class Selu(Activation):
    """`output = gamma * input` where `input > 0`, else `gamma * alpha * (e ** input - 1)`.

    NaN stays NaN. See Klambauer et al., Self-Normalizing Neural Networks
    (https://arxiv.org/abs/1706.02515), for the defaults, too.
    """

    __slots__ = ()
    alpha = real(1.6732632423543772)
    gamma = real(1.0507009873554805)
    examples = (*Activation.examples, example(input=random(2, 5), alpha=2.0, gamma=0.5))

    def reference(self, input: Array, alpha: float, gamma: float) -> Array:
        return gamma * np.where(input > 0, input, alpha * np.expm1(input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, b.add(Elu, self.input, self.alpha), self.gamma)


@operator("CELU", onnx=("Celu",))
class Celu(Activation):
    """`output = input` where `input > 0`, else `alpha * (e ** (input / alpha) - 1)`.

    NaN stays NaN. See Barron, Continuously Differentiable Exponential Linear Units
    (https://arxiv.org/abs/1704.07483).
    """

    __slots__ = ()
    alpha = real(1.0)
    examples = (*Activation.examples, example(input=random(2, 5), alpha=2.5))

    def reference(self, input: Array, alpha: float) -> Array:
        return np.where(input > 0, input, alpha * np.expm1(input / alpha))

    def decompose(self, b: Builder) -> Operand:
        scaled = b.add(Div, b.add(Min, self.input, 0.0), self.alpha)
        curve = b.add(Mul, exp_minus_1(b, scaled), self.alpha)
        return b.add(Where, b.add(Less, number(0, self.input), self.input), self.input, curve)


def exp_minus_1(b: Builder, x: Operand) -> Operand:
    """`e ** x - 1` from core operators, with all digits for a small `x`, too."""
    half = b.add(Tanh, b.add(Mul, x, 0.5))
    return b.add(Mul, half, b.add(Add, b.add(Exp, x), 1.0))
