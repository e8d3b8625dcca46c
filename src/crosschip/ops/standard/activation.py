"""Activation functions."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape
from crosschip.ir.types import NUMBERS
from crosschip.ops.definition.kinds import Elementwise, Unary, aligned_row_axis, number
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.registry import operator, operator_named
from crosschip.ops.definition.shape_values import Sizes
from crosschip.ops.definition.shapes import broadcast, normalize_axis
from crosschip.ops.definition.slots import flag, integer, real, tensor
from crosschip.ops.numerics.error_function import error_function
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.creation import OneHot
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.searching import ArgMax
from crosschip.ops.standard.unary import Abs, Erf, Exp, Log, Neg, Reciprocal, log_1_plus


class Activation(Unary):
    """Base class of functions of one real that networks use between layers."""

    __slots__ = ()


@operator("RELU")
class Relu(Elementwise):
    """`output = max(0, input)`; NaN stays NaN.

    A device that fuses it with the producer of its input may output 0 for NaN.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return np.maximum(input, 0)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Clip, self.input, min=0)


@operator("RELU6")
class Relu6(Activation):
    """`output = min(6, max(0, input))`; NaN stays NaN.

    A device that fuses it with the producer of its input may output 0 or 6 for NaN.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.clip(input, 0, 6)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Clip, self.input, 0, 6)


@operator("LEAKY_RELU")
class LeakyRelu(Activation):
    """`output = input` where `input >= 0`, else `alpha * input`; NaN stays NaN."""

    __slots__ = ()
    alpha = real(0.01)

    def reference(self, input: Array) -> Array:
        return np.where(input >= 0, input, self.alpha * input)

    def decompose(self, b: Builder) -> Operand:
        is_negative = b.add(Less, self.input, 0.0)
        return b.add(Where, is_negative, b.add(Mul, self.input, self.alpha), self.input)


@operator("PRELU")
class PRelu(Elementwise):
    """`output = input` where `input >= 0`, else `slope * input`; NaN stays NaN.

    A slope of rank 1 runs along axis 1 of the input (the channels) if the input has rank 2 or more.
    Any other slope is broadcast to the input as in NumPy, and must not change the input's shape.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    slope = tensor(NUMBERS, like="input")

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        slope = shape_of(self.slope)
        aligned = slope + (1,) * self._axes_after(len(shape), len(slope))
        try:
            result = broadcast(shape, aligned, slot="slope")
        except ValueError:
            result = ()
        is_larger = any(
            isinstance(new, int) and isinstance(old, int) and new != old
            for new, old in zip(result, shape, strict=False)
        )
        if is_larger or len(result) != len(shape):
            sizes = ", ".join(map(str, slope))
            raise ValueError(f"slope: its shape [{sizes}] cannot be broadcast to the input's")
        return shape

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        # A slope along the channels, or a single one, is the same for all images.
        rows, slope = axes
        slope_shape = shape_of(self.slope)
        is_common = (len(slope_shape) == 1 and len(shape_of(self.input)) > 1) or set(
            slope_shape
        ) <= {1}
        return 0 if rows == 0 and slope is None and is_common else None

    def reference(self, input: Array, slope: Array) -> Array:
        after = self._axes_after(input.ndim, slope.ndim)
        return np.where(input >= 0, input, slope.reshape(slope.shape + (1,) * after) * input)

    def decompose(self, b: Builder) -> Operand:
        slope = self.slope
        after = self._axes_after(len(shape_of(self.input)), len(shape_of(slope)))
        if after:
            slope = b.add(operator_named("RESHAPE"), slope, (-1,) + (1,) * after)
        is_negative = b.add(Less, self.input, number(0, self.input))
        output = b.add(Where, is_negative, b.add(Mul, self.input, slope), self.input)
        if output.type.shape == self.input.type.shape:
            return output
        # A slope that broadcast the input to a larger shape gives too many elements for RESHAPE.
        shape = b.add(operator_named("SHAPE"), self.input)
        return b.add(operator_named("RESHAPE"), output, shape, allow_zero=True)

    @staticmethod
    def _axes_after(rank: int, slope_rank: int) -> int:
        """Return the number of input axes after the axis that a slope runs along."""
        return max(0, rank - 2) if slope_rank == 1 else 0


@operator("SIGMOID")
class Sigmoid(Activation):
    """`output = 1 / (1 + e ** -input)`, between 0 and 1."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return 1 / (1 + np.exp(-input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Reciprocal, b.add(Add, b.add(Exp, b.add(Neg, self.input)), 1.0))


@operator("TANH", core=True)
class Tanh(Activation):
    """`output = (e ** input - e ** -input) / (e ** input + e ** -input)`, between -1 and 1."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return np.tanh(input)


@operator("HARD_SIGMOID")
class HardSigmoid(Activation):
    """`output = max(0, min(1, alpha * input + beta))`; NaN stays NaN."""

    __slots__ = ()
    alpha = real(0.2)
    beta = real(0.5)

    def reference(self, input: Array) -> Array:
        return np.clip(self.alpha * input + self.beta, 0, 1)

    def decompose(self, b: Builder) -> Operand:
        line = b.add(Add, b.add(Mul, self.input, self.alpha), self.beta)
        return b.add(Clip, line, 0, 1)


@operator("HARD_SWISH")
class HardSwish(Activation):
    """`output = input * max(0, min(1, alpha * input + beta))`; NaN stays NaN."""

    __slots__ = ()
    alpha = real(1 / 6)
    beta = real(0.5)

    def reference(self, input: Array) -> Array:
        return input * np.clip(self.alpha * input + self.beta, 0, 1)

    def decompose(self, b: Builder) -> Operand:
        alpha, beta = (self.operand(slot) for slot in ("alpha", "beta"))
        gate = b.add(HardSigmoid, self.input, alpha or self.alpha, beta or self.beta)
        return b.add(Mul, self.input, gate)


@operator("SWISH")
class Swish(Activation):
    """`output = input / (1 + e ** -input)`, also known as SiLU; NaN for -infinity.

    The factor of the input is as exact as numbers near 1 are in the element type.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return input / (1 + np.exp(-input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, self.input, b.add(Sigmoid, self.input))


@operator("SOFTSIGN")
class Softsign(Activation):
    """`output = input / (1 + |input|)`, between -1 and 1; NaN for infinities."""

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return input / (1 + np.abs(input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Div, self.input, b.add(Add, b.add(Abs, self.input), 1.0))


@operator("THRESHOLDED_RELU")
class ThresholdedRelu(Activation):
    """`output = input` where `input > alpha`, else 0, also for NaN."""

    __slots__ = ()
    alpha = real(1.0)

    def reference(self, input: Array) -> Array:
        return np.where(input > self.alpha, input, np.zeros_like(input))

    def decompose(self, b: Builder) -> Operand:
        is_above = b.add(Less, number(self.alpha, self.input), self.input)
        return b.add(Where, is_above, self.input, number(0, self.input))


@operator("SHRINK")
class Shrink(Activation):
    """`input + bias` where `input < -lambd`, `input - bias` where `input > lambd`, else 0.

    If both conditions hold, the first applies. For NaN the output is 0.
    """

    __slots__ = ()
    bias = real(0.0)
    lambd = real(0.5)

    def reference(self, input: Array) -> Array:
        upper = np.where(input > self.lambd, input - self.bias, np.zeros_like(input))
        return np.where(input < -self.lambd, input + self.bias, upper)

    def decompose(self, b: Builder) -> Operand:
        x = self.input
        is_below = b.add(Less, x, -self.lambd)
        is_above = b.add(Less, number(self.lambd, x), x)
        upper = b.add(Where, is_above, b.add(Sub, x, self.bias), number(0, x))
        return b.add(Where, is_below, b.add(Add, x, self.bias), upper)


class AlongAxis(Activation):
    """Base class of functions of all elements along an axis; axis -1 is the last one."""

    __slots__ = ()
    axis = integer(1)

    def infer_shape(self) -> Shape:
        normalize_axis(self.axis, len(shape_of(self.input)))
        return shape_of(self.input)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        (axis, *_) = axes
        return None if axis == normalize_axis(self.axis, len(shape_of(self.input))) else axis

    def subtract_maximum(self, b: Builder) -> Operand:
        """Build the input minus its maximum along the axis, so that no exponential overflows."""
        greatest = b.add(operator_named("REDUCE_MAX"), self.input, (self.axis,), True)
        return b.add(Sub, self.input, greatest)


@operator("SOFTMAX")
class Softmax(AlongAxis):
    """`output = e ** input / sum(e ** input)` along `axis`; the maximum input is subtracted first.

    If the maximum is infinite, or any input is NaN, all outputs are NaN, or some are 0: the device
    chooses. By the formula and IEEE 754 all are NaN, since the sum is NaN; so it is in ONNX's
    Softmax (a function of its other operators) and in ONNX Runtime, whereas OpenVINO gives 0 beside
    NaN.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        powers = np.exp(input - input.max(self.axis, keepdims=True, initial=-np.inf))
        return powers / powers.sum(self.axis, keepdims=True)

    def decompose(self, b: Builder) -> Operand:
        powers = b.add(Exp, self.subtract_maximum(b))
        total = b.add(operator_named("REDUCE_SUM"), powers, (self.axis,), True)
        return b.add(Div, powers, total)


@operator("LOG_SOFTMAX")
class LogSoftmax(AlongAxis):
    """`output = input - log(sum(e ** input))` along `axis`; the maximum is subtracted first.

    If the maximum is infinite, or any input is NaN, all outputs are NaN, or some are -infinity: the
    device chooses, as for SOFTMAX, whose logarithm it is.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        below = input - input.max(self.axis, keepdims=True, initial=-np.inf)
        return below - np.log(np.exp(below).sum(self.axis, keepdims=True))

    def decompose(self, b: Builder) -> Operand:
        below = self.subtract_maximum(b)
        total = b.add(operator_named("REDUCE_SUM"), b.add(Exp, below), (self.axis,), True)
        return b.add(Sub, below, b.add(Log, total))


@operator("GELU")
class Gelu(Activation):
    """`output = input * P(X <= input)` for a standard normal `X`; NaN for -infinity.

    A device that fuses it with the producer of its input may output NaN for infinity.

    The formula is `input * (1 + erf(input / sqrt(2))) / 2`; with `approximate`, it is `input * (1 +
    tanh(sqrt(2 / pi) * (input + 0.044715 * input ** 3))) / 2`. See Hendrycks and Gimpel, Gaussian
    Error Linear Units (https://arxiv.org/abs/1606.08415). The factor of the input is as exact as
    numbers near 1 are in the element type.
    """

    __slots__ = ()
    approximate = flag(False)

    def reference(self, input: Array) -> Array:
        wide = input.astype(np.float64)
        if self.approximate:
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


@operator("SOFTPLUS")
class Softplus(Activation):
    """`output = log(1 + e ** (beta * input)) / beta`, or `input` if `beta * input > threshold`.

    The exponential is not computed where it would overflow the element type.
    """

    __slots__ = ()
    beta = real(1.0)
    threshold = real(20.0)

    def reference(self, input: Array) -> Array:
        scaled = self.beta * input
        return np.where(scaled > self.threshold, input, np.logaddexp(0, scaled) / self.beta)

    def decompose(self, b: Builder) -> Operand:
        scaled = b.add(Mul, self.input, self.beta)
        power = b.add(Exp, b.add(Neg, b.add(Abs, scaled)))
        curve = b.add(Add, b.add(Max, scaled, 0.0), log_1_plus(b, power))
        is_line = b.add(Less, number(self.threshold, scaled), scaled)
        return b.add(Where, is_line, self.input, b.add(Div, curve, self.beta))


@operator("MISH")
class Mish(Activation):
    """`output = input * tanh(log(1 + e ** input))`; NaN for -infinity.

    The factor of the input is as exact as numbers near 1 are in the element type.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        return input * np.tanh(np.logaddexp(0, input))

    def decompose(self, b: Builder) -> Operand:
        gate = b.add(Tanh, b.add(Softplus, self.input, threshold=np.inf))
        return b.add(Mul, self.input, gate)


@operator("ELU")
class Elu(Activation):
    """`output = input` where `input > 0`, else `alpha * (e ** input - 1)`; NaN stays NaN.

    The exponential is as exact as numbers near 1 are in the element type. See Clevert et al.,
    Exponential Linear Units (https://arxiv.org/abs/1511.07289).
    """

    __slots__ = ()
    alpha = real(1.0)

    def reference(self, input: Array) -> Array:
        return np.where(input > 0, input, self.alpha * np.expm1(input))

    def decompose(self, b: Builder) -> Operand:
        curve = b.add(Mul, exp_minus_1(b, b.add(Min, self.input, 0.0)), self.alpha)
        return b.add(Where, b.add(Less, number(0, self.input), self.input), self.input, curve)


@operator("SELU")
class Selu(Activation):
    """`output = gamma * input` where `input > 0`, else `gamma * alpha * (e ** input - 1)`.

    NaN stays NaN. The exponential is as exact as numbers near 1 are in the element type. See
    Klambauer et al., Self-Normalizing Neural Networks (https://arxiv.org/abs/1706.02515), also for
    the defaults.
    """

    __slots__ = ()
    alpha = real(1.6732632423543772)
    gamma = real(1.0507009873554805)

    def reference(self, input: Array) -> Array:
        return self.gamma * np.where(input > 0, input, self.alpha * np.expm1(input))

    def decompose(self, b: Builder) -> Operand:
        return b.add(Mul, b.add(Elu, self.input, self.alpha), self.gamma)


@operator("CELU")
class Celu(Activation):
    """`output = input` where `input > 0`, else `alpha * (e ** (input / alpha) - 1)`.

    NaN stays NaN. The exponential is as exact as numbers near 1 are in the element type. See
    Barron, Continuously Differentiable Exponential Linear Units (https://arxiv.org/abs/1704.07483).
    """

    __slots__ = ()
    alpha = real(1.0)

    def reference(self, input: Array) -> Array:
        return np.where(input > 0, input, self.alpha * np.expm1(input / self.alpha))

    def decompose(self, b: Builder) -> Operand:
        scaled = b.add(Div, b.add(Min, self.input, 0.0), self.alpha)
        curve = b.add(Mul, exp_minus_1(b, scaled), self.alpha)
        return b.add(Where, b.add(Less, number(0, self.input), self.input), self.input, curve)


def exp_minus_1(b: Builder, x: Operand) -> Operand:
    """Build `e ** x - 1` from core operators, with full precision for small `x`."""
    half = b.add(Tanh, b.add(Mul, x, 0.5))
    return b.add(Mul, half, b.add(Add, b.add(Exp, x), 1.0))


@operator("HARDMAX")
class Hardmax(AlongAxis):
    """1 at the maximum along `axis` (the first of equal ones), and 0 for all other elements.

    NaN counts as the maximum, as in NumPy and ONNX's evaluator. If the axis has size 0, the output
    is empty like the input.
    """

    __slots__ = ()

    def reference(self, input: Array) -> Array:
        output = np.zeros_like(input)
        if input.size:
            indices = np.expand_dims(np.argmax(input, self.axis), self.axis)
            np.put_along_axis(output, indices, 1, self.axis)
        return output

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        axis = normalize_axis(self.axis, len(sizes.shape))
        if shape_of(self.input)[axis] == 0:
            return b.add(Assign, self.input)
        input, depth = self.input, sizes((sizes.shape[axis],))
        if not isinstance(sizes.shape[axis], int):
            # The dynamic dimension may be 0, and ARG_MAX fails on an empty axis.
            pads = [0] * (2 * len(sizes.shape))
            pads[2 * axis + 1] = 1
            input = b.add(operator_named("PAD"), input, pads, value=number(-np.inf, input))
        indices = b.add(ArgMax, input, axis, False, ElementType.INT64)
        one, zero = number(1, self.input), number(0, self.input)
        return b.add(OneHot, indices, depth, one, zero, axis)
