"""Activation functions."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, Operand, Shape
from crosschip.ir.types import FLOATS
from crosschip.ops.elementwise import Clip, Elementwise, Mul
from crosschip.ops.operator import operator, shape_of
from crosschip.ops.shapes import axis_in
from crosschip.ops.slots import integer, real, tensor


class Activation(Elementwise):
    """Base of functions of one floating-point tensor."""

    __slots__ = ()
    input = tensor(FLOATS)


@operator("RELU")
class Relu(Activation):
    """`output = max(0, input)`."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.maximum(input, 0)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Clip, self.input, min=0.0)


@operator("RELU6")
class Relu6(Activation):
    """`output = min(6, max(0, input))`."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.clip(input, 0, 6)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Clip, self.input, 0.0, 6.0)


@operator("LEAKY_RELU")
class LeakyRelu(Activation):
    """`output = input` where `input >= 0`, else `alpha * input`."""

    __slots__ = ()
    alpha = real(0.01)

    def reference(self, input: Array, alpha: float) -> Array:
        return np.where(input >= 0, input, alpha * input)


@operator("SIGMOID")
class Sigmoid(Activation):
    """`output = 1 / (1 + e ** -input)`."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return 1 / (1 + np.exp(-input))


@operator("TANH")
class Tanh(Activation):
    """`output = tanh(input)`."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.tanh(input)


@operator("HARD_SIGMOID")
class HardSigmoid(Activation):
    """`output = max(0, min(1, alpha * input + beta))`."""

    __slots__ = ()
    alpha = real(0.2)
    beta = real(0.5)

    def reference(self, input: Array, alpha: float, beta: float) -> Array:
        return np.clip(alpha * input + beta, 0, 1)


@operator("HARD_SWISH")
class HardSwish(Activation):
    """`output = input * max(0, min(1, alpha * input + beta))`."""

    __slots__ = ()
    alpha = real(1 / 6)
    beta = real(0.5)

    def reference(self, input: Array, alpha: float, beta: float) -> Array:
        return input * np.clip(alpha * input + beta, 0, 1)

    def decompose(self, b: Builder) -> Operand:
        gate = b.add(HardSigmoid, self.input, self.operand("alpha") or self.alpha, self.beta)
        return b.add(Mul, self.input, gate)


@operator("SWISH")
class Swish(Activation):
    """`output = input / (1 + e ** -input)`."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return input / (1 + np.exp(-input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, self.input, b.add(Sigmoid, self.input))


@operator("SOFTMAX")
class Softmax(Activation):
    """`output = exp(input) / sum(exp(input))` along `axis`; the maximum is subtracted first."""

    __slots__ = ()
    axis = integer(1)

    def infer_shape(self) -> Shape:
        axis_in(self.axis, len(shape_of(self.input)))
        return shape_of(self.input)

    def reference(self, input: Array, axis: int) -> Array:
        powers = np.exp(input - input.max(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)
