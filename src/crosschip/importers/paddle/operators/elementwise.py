"""Element by element arithmetic."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import ModelError, Operand
from crosschip.ops import Operator
from crosschip.ops.elementwise import Add, Clip, Div, Exp, Max, Min, Mul, Pow, Sqrt, Sub
from crosschip.ops.layout import Unsqueeze

_UNARY: dict[str, type[Operator]] = {"exp": Exp, "sqrt": Sqrt}
_BINARY: dict[str, type[Operator]] = {
    "elementwise_add": Add,
    "elementwise_sub": Sub,
    "elementwise_mul": Mul,
    "elementwise_div": Div,
    "elementwise_pow": Pow,
    "elementwise_max": Max,
    "elementwise_min": Min,
}

_Step = tuple[type[Operator], Operand | float, float]
"""An operator, its second input, and the value of that with which it changes nothing."""


def _unary(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, op.input())


def _binary(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, *_aligned(op))


for _name, _operator in _UNARY.items():
    imports(_name)(_unary(_operator))
for _name, _operator in _BINARY.items():
    imports(_name)(_binary(_operator))


def _aligned(op: Context) -> tuple[Operand, Operand]:
    """The two inputs, so that they broadcast from the last axis on, as NumPy does.

    Paddle 2 can lay the one with fewer axes along the other from any `axis` on.
    """
    x, y = op.input("X"), op.input("Y")
    axis = op.integer("axis", -1)
    if axis == -1 or x.type.shape is None or y.type.shape is None:
        return x, y
    missing = len(x.type.shape) - len(y.type.shape)
    after = abs(missing) - axis
    if missing and not 0 <= after <= abs(missing):
        raise ModelError(f"axis: {axis} does not fit inputs {x.type} and {y.type}")
    if missing > 0:
        return x, _with_axes_after(op, y, after)
    if missing < 0:
        return _with_axes_after(op, x, after), y
    return x, y


def _with_axes_after(op: Context, operand: Operand, count: int) -> Operand:
    """The operand with axes of size 1 behind its own."""
    if not count:
        return operand
    if operand.value is not None:
        shape = operand.value.shape + (1,) * count
        return op.constant(operand.value.reshape(shape), operand.name)
    rank = len(operand.type.shape or ())
    return op.add(Unsqueeze, operand, tuple(range(rank, rank + count)))


@imports("scale")
def scale(op: Context) -> None:
    """`scale * x + bias`, or `scale * (x + bias)` unless `bias_after_scale`."""
    factor = op.real_or_tensor("scale", 1.0, "ScaleTensor")
    steps: list[_Step] = [(Mul, factor, 1.0), (Add, op.real("bias", 0.0), 0.0)]
    if not op.flag("bias_after_scale", True):
        steps.reverse()
    needed = [(operator, term) for operator, term, neutral in steps if term != neutral]
    value = op.input()
    for operator, term in needed[:-1]:
        value = op.add(operator, value, term)
    if needed:
        operator, term = needed[-1]
        op.make(operator, value, term)
    else:
        op.define(value)


@imports("pow")
def pow(op: Context) -> None:
    op.make(Pow, op.input(), op.real_or_tensor("factor", 1.0, "FactorTensor"))


@imports("clip")
def clip(op: Context) -> None:
    low, high = op.real_or_tensor("min", None, "Min"), op.real_or_tensor("max", None, "Max")
    op.make(Clip, op.input(), low, high)


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


@imports("assign")
def assign(op: Context) -> None:
    op.define(op.input())
