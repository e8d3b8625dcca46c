"""Element by element arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

from crosschip.importers.paddle.axes import aligned, with_axes_after
from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.fusing import fused
from crosschip.importers.paddle.table import imports
from crosschip.ir import ModelError, Operand
from crosschip.ir.types import INTEGERS
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import (
    Add,
    Clip,
    Div,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    Sub,
    Sum,
)

_BINARY: dict[str, type[Operator]] = {
    "elementwise_add": Add,
    "elementwise_sub": Sub,
    "elementwise_mul": Mul,
    "elementwise_div": Div,
    "elementwise_floordiv": FloorDiv,
    "elementwise_pow": Pow,
    "elementwise_max": Max,
    "elementwise_min": Min,
}

_GREATEST = 2.0**63

_Step = tuple[type[Operator], Operand | float, float]
"""An operator, its second input, and the value of that with which it changes nothing."""


def _binary(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, *aligned(op), fuse_code=fused(op))


for _name, _operator in _BINARY.items():
    imports(_name, f"fusion_{_name}_activation")(_binary(_operator))


@imports("elementwise_mod")
def elementwise_mod(op: Context) -> None:
    op.make(Mod, *aligned(op))


@imports("scale")
def scale(op: Context) -> None:
    """`scale * x + bias`, or `scale * (x + bias)` unless `bias_after_scale`."""
    x = op.input()
    factor = op.real_or_tensor("scale", 1.0, "ScaleTensor")
    bias: float | Operand = op.real("bias", 0.0)
    if x.type.element_type in INTEGERS:
        factor, bias = _whole(op, factor, x), _whole(op, bias, x)
    steps: list[_Step] = [(Mul, factor, 1.0), (Add, bias, 0.0)]
    if not op.flag("bias_after_scale", True):
        steps.reverse()
    needed = [(operator, term) for operator, term, neutral in steps if term != neutral]
    for operator, term in needed[:-1]:
        x = op.add(operator, x, term)
    if needed:
        operator, term = needed[-1]
        op.make(operator, x, term)
    else:
        op.define(x)


def _whole(op: Context, number: float | Operand, x: Operand) -> float | Operand:
    """A number as Paddle has it for integers: without its fraction."""
    if isinstance(number, Operand):
        return op.as_type(number, x.type.element_type)
    if not abs(number) < _GREATEST:
        raise ModelError(f"scale and bias: {number} is not a value of {x.type.element_type}")
    return math.trunc(number)


@imports("pow")
def pow(op: Context) -> None:
    x = op.input()
    factor = op.real_or_tensor("factor", 1.0, "FactorTensor")
    if isinstance(factor, Operand):
        factor = op.as_type(factor, x.type.element_type)
    op.make(Pow, x, factor)


@imports("clip")
def clip(op: Context) -> None:
    low, high = op.real_or_tensor("min", None, "Min"), op.real_or_tensor("max", None, "Max")
    op.make(Clip, op.input(), low, high)


@imports("sum")
def sum(op: Context) -> None:
    terms = op.inputs("X")
    if len(terms) == 1:
        op.define(terms[0])
    else:
        op.make(Sum, terms)


@imports("dropout")
def dropout(op: Context) -> None:
    """Nothing, when not training; or what remains on average, if it was not scaled up then."""
    mode = op.text("dropout_implementation", "downgrade_in_infer")
    if mode == "upscale_in_train":
        op.define(op.input())
    elif mode == "downgrade_in_infer":
        op.make(Mul, op.input(), 1 - op.real("dropout_prob", 0.5))
    else:
        raise ModelError(f"dropout_implementation: {mode!r} is not known")


@imports("increment")
def increment(op: Context) -> None:
    x = op.input()
    step: float | Operand = op.real("step", 1.0)
    op.make(Add, x, _whole(op, step, x) if x.type.element_type in INTEGERS else step)


@imports("affine_channel")
def affine_channel(op: Context) -> None:
    """`scale * x + bias` for each channel; the last axis are the channels unless it says `NCHW`."""
    x = op.input()
    after = op.rank(x) - 2 if op.text("data_layout", "AnyLayout") == "NCHW" else 0
    factor, bias = (with_axes_after(op, op.input(slot), after) for slot in ("Scale", "Bias"))
    op.make(Add, op.add(Mul, x, factor), bias)
