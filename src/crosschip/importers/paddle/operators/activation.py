"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.axes import make_along_axis
from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.images import Images
from crosschip.ir import ModelError
from crosschip.ops import Operator
from crosschip.ops.standard.activation import (
    Celu,
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    LogSoftmax,
    Mish,
    PRelu,
    Relu,
    Relu6,
    Selu,
    Shrink,
    Sigmoid,
    Softmax,
    Softplus,
    Softsign,
    Swish,
    Tanh,
    ThresholdedRelu,
)
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mul
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import Where

_PLAIN: dict[str, type[Operator]] = {
    "relu": Relu,
    "sigmoid": Sigmoid,
    "silu": Swish,
    "softsign": Softsign,
    "tanh": Tanh,
}
_BY_ALPHA: dict[str, type[Operator]] = {"celu": Celu, "elu": Elu}
_ALONG_AXIS: dict[str, type[Operator]] = {"softmax": Softmax, "log_softmax": LogSoftmax}


def _plain(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, op.input())


def _by_alpha(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, op.input(), op.real("alpha", 1.0))


def _along_axis(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: make_along_axis(op, operator, op.input(), op.integer("axis", -1))


for _name, _operator in _PLAIN.items():
    imports(_name)(_plain(_operator))
for _name, _operator in _BY_ALPHA.items():
    imports(_name)(_by_alpha(_operator))
for _name, _operator in _ALONG_AXIS.items():
    imports(_name)(_along_axis(_operator))


@imports("relu6")
def relu6(op: Context) -> None:
    threshold = op.real("threshold", 6.0)
    if threshold == 6.0:
        op.make(Relu6, op.input())
    else:
        op.make(Clip, op.input(), 0.0, threshold)


@imports("leaky_relu")
def leaky_relu(op: Context) -> None:
    op.make(LeakyRelu, op.input(), op.real("alpha", 0.02))


@imports("prelu")
def prelu(op: Context) -> None:
    """`x` if positive, else `alpha * x`, with one `alpha` for all, per channel or per element."""
    x, alpha = op.input(), op.input("Alpha")
    mode = op.text("mode", "all")
    if mode == "all":
        op.make(PRelu, x, op.add(Reshape, alpha, () if x.type.shape == () else (1,)))
    elif mode == "channel":
        images = Images(op)
        images.make(PRelu, images.input("X"), op.add(Reshape, alpha, (-1,)))
    elif mode == "element":
        is_negative = op.add(Less, x, 0.0)
        op.make(Where, is_negative, op.add(Mul, alpha, x), x)
    else:
        raise ModelError(f"mode: {mode!r} is not one of all, channel, element")


@imports("hard_sigmoid")
def hard_sigmoid(op: Context) -> None:
    op.make(HardSigmoid, op.input(), op.real("slope", 0.2), op.real("offset", 0.5))


@imports("hard_swish")
def hard_swish(op: Context) -> None:
    """`x * min(max(x + offset, 0), threshold) / scale`; HARD_SWISH has threshold = scale."""
    x = op.input()
    threshold, scale = op.real("threshold", 6.0), op.real("scale", 6.0)
    offset = op.real("offset", 3.0)
    if not scale:
        raise ModelError("scale: is 0")
    if threshold == scale:
        op.make(HardSwish, x, 1 / scale, offset / scale)
    else:
        gate = op.add(Clip, op.add(Add, x, offset), 0.0, threshold)
        op.make(Div, op.add(Mul, x, gate), scale)


@imports("swish")
def swish(op: Context) -> None:
    beta = op.real("beta", 1.0)
    if beta == 1.0:
        op.make(Swish, op.input())
    else:
        gate = op.add(Sigmoid, op.add(Mul, op.input(), beta))
        op.make(Mul, op.input(), gate)


@imports("gelu")
def gelu(op: Context) -> None:
    op.make(Gelu, op.input(), op.flag("approximate", False))


@imports("softplus")
def softplus(op: Context) -> None:
    op.make(Softplus, op.input(), op.real("beta", 1.0), op.real("threshold", 20.0))


@imports("mish")
def mish(op: Context) -> None:
    """`x * tanh(softplus(x))`, where softplus is `x` from the threshold on."""
    x, threshold = op.input(), op.real("threshold", 20.0)
    if threshold == 20.0:
        op.make(Mish, x)
    else:
        op.make(Mul, x, op.add(Tanh, op.add(Softplus, x, 1.0, threshold)))


@imports("selu")
def selu(op: Context) -> None:
    scale = op.real("scale", 1.0507009873554805)
    op.make(Selu, op.input(), alpha=op.real("alpha", 1.6732632423543772), gamma=scale)


@imports("thresholded_relu")
def thresholded_relu(op: Context) -> None:
    op.make(ThresholdedRelu, op.input(), op.real("threshold", 1.0))


@imports("hard_shrink")
def hard_shrink(op: Context) -> None:
    op.make(Shrink, op.input(), bias=0.0, lambd=op.real("threshold", 0.5))


@imports("softshrink")
def softshrink(op: Context) -> None:
    width = op.real("lambda", 0.5)
    op.make(Shrink, op.input(), bias=width, lambd=width)
