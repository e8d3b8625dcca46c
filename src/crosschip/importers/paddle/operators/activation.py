"""Activation functions."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.activation import (
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Relu,
    Relu6,
    Sigmoid,
    Softmax,
    Swish,
    Tanh,
)
from crosschip.ops.elementwise import Clip, Mul

_PLAIN = {"relu": Relu, "sigmoid": Sigmoid, "silu": Swish, "tanh": Tanh}


def _plain(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, op.input())


for _name, _operator in _PLAIN.items():
    imports(_name)(_plain(_operator))


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


@imports("hard_sigmoid")
def hard_sigmoid(op: Context) -> None:
    op.make(HardSigmoid, op.input(), op.real("slope", 0.2), op.real("offset", 0.5))


@imports("hard_swish")
def hard_swish(op: Context) -> None:
    """`x * min(max(x + offset, 0), threshold) / scale`; only scale = threshold is standard."""
    threshold = op.real("threshold", 6.0)
    scale = op.real("scale", 6.0)
    if threshold != scale or not scale:
        raise UnsupportedError(f"threshold {threshold:g} with scale {scale:g}: they must be equal")
    op.make(HardSwish, op.input(), 1 / scale, op.real("offset", 3.0) / scale)


@imports("swish")
def swish(op: Context) -> None:
    beta = op.real("beta", 1.0)
    if beta == 1.0:
        op.make(Swish, op.input())
    else:
        gate = op.add(Sigmoid, op.add(Mul, op.input(), beta))
        op.make(Mul, op.input(), gate)


@imports("softmax")
def softmax(op: Context) -> None:
    op.make(Softmax, op.input(), op.integer("axis", -1))
