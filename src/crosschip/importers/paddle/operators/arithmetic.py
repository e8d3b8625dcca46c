"""Elementwise arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable

from crosschip.importers.paddle.axes import append_axes, broadcast_inputs
from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.operators.joining import partial_columns
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ir.types import FLOATS, INTEGERS
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Swish
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
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.unary import Atan, IsNaN

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
_NO_AXIS = 9
"""Paddle's code of an unspecified axis."""

_Step = tuple[type[Operator], Operand | float, float]
"""An operator, its second input, and the neutral value of that."""


def _binary(operator: type[Operator]) -> Callable[[Context], None]:
    return lambda op: op.make(operator, *broadcast_inputs(op), fuse_code=op.fuse_code())


for _name, _operator in _BINARY.items():
    imports(_name, f"fusion_{_name}_activation")(_binary(_operator))


@imports("elementwise_mod")
def elementwise_mod(op: Context) -> None:
    op.make(Mod, *broadcast_inputs(op))


@imports("scale")
def scale(op: Context) -> None:
    """`scale * x + bias`, or `scale * (x + bias)` unless `bias_after_scale`."""
    x = op.input()
    factor = op.real_or_tensor("scale", 1.0, "ScaleTensor")
    bias: float | Operand = op.real("bias", 0.0)
    if x.type.element_type in INTEGERS:
        factor, bias = _truncate(op, factor, x), _truncate(op, bias, x)
    steps: list[_Step] = [(Mul, factor, 1.0), (Add, bias, 0.0)]
    if not op.flag("bias_after_scale", True):
        steps.reverse()
    remaining = [(operator, term) for operator, term, neutral in steps if term != neutral]
    for operator, term in remaining[:-1]:
        x = op.add(operator, x, term)
    if remaining:
        operator, term = remaining[-1]
        op.make(operator, x, term)
    else:
        op.define(x)


def _truncate(op: Context, number: float | Operand, x: Operand) -> float | Operand:
    """Truncate a number, as Paddle does for integer tensors."""
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
    """Import the identity, or scaling by `1 - dropout_prob` if training did not scale up."""
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
    op.make(Add, x, _truncate(op, step, x) if x.type.element_type in INTEGERS else step)


@imports("affine_channel")
def affine_channel(op: Context) -> None:
    """`scale * x + bias` per channel; channels are the last axis unless the layout is NCHW."""
    x = op.input()
    after = op.rank(x) - 2 if op.text("data_layout", "AnyLayout") == "NCHW" else 0
    factor, bias = (append_axes(op, op.input(slot), after) for slot in ("Scale", "Bias"))
    op.make(Add, op.add(Mul, x, factor), bias)


@imports("atan2")
def atan2(op: Context) -> None:
    """Import `atan2`: the angle of the point (x, y), from -pi to pi."""
    y, x = op.input("X1"), op.input("X2")
    dtype = x.type.element_type.dtype.type
    zero, half, pi = dtype(0), dtype(math.pi / 2), dtype(math.pi)
    is_left, is_below = op.add(Less, x, zero), op.add(Less, y, zero)
    is_upright = op.add(Equal, x, zero)
    angle = op.add(Atan, op.add(Div, y, op.add(Where, is_upright, dtype(1), x)))
    left_angle = op.add(Where, is_below, op.add(Sub, angle, pi), op.add(Add, angle, pi))
    upright = op.add(Where, op.add(Equal, y, zero), zero, op.add(Where, is_below, -half, half))
    op.make(Where, is_upright, upright, op.add(Where, is_left, left_angle, angle))


@imports("brelu")
def brelu(op: Context) -> None:
    op.make(Clip, op.input(), op.real("t_min", 0.0), op.real("t_max", 24.0))


def _ignoring_nan(operator: type[Operator]) -> Callable[[Context], None]:
    def choose(op: Context) -> None:
        """Choose the maximum or minimum; if one operand is NaN, the other one."""
        x, y = broadcast_inputs(op)
        if x.type.element_type not in FLOATS:
            op.make(operator, x, y)
            return
        result = op.add(Where, op.add(IsNaN, y), x, op.add(operator, x, y))
        op.make(Where, op.add(IsNaN, x), y, result)

    return choose


imports("elementwise_fmax")(_ignoring_nan(Max))
imports("elementwise_fmin")(_ignoring_nan(Min))


@imports("label_smooth")
def label_smooth(op: Context) -> None:
    """`(1 - epsilon) * x + epsilon * prior`; the default prior is uniform."""
    x, epsilon = op.input(), op.real("epsilon", 0.0)
    prior = op.optional_input("PriorDist")
    scaled = op.add(Mul, x, 1 - epsilon)
    if prior is not None:
        op.make(Add, scaled, op.add(Mul, prior, epsilon))
        return
    classes = (x.type.shape or (None,))[-1]
    if not isinstance(classes, int) or not classes:
        raise UnsupportedError(f"X: {x.type} must have a known number of classes")
    op.make(Add, scaled, epsilon / classes)


@imports("lerp")
def lerp(op: Context) -> None:
    x, y = op.input(), op.input("Y")
    op.make(Add, x, op.add(Mul, op.input("Weight"), op.add(Sub, y, x)))


@imports("partial_sum")
def partial_sum(op: Context) -> None:
    """Import `partial_sum`: the sum of a range of columns of all inputs."""
    op.make(Sum, partial_columns(op))


@imports("pd_op.swiglu")
def swiglu(op: Context) -> None:
    """`x * sigmoid(x) * y`; without `y`, the halves of the last axis are `x` and `y`."""
    x, y = op.input(), op.optional_input("Y")
    if y is None:
        size = (x.type.shape or (None,))[-1]
        if not isinstance(size, int) or size % 2:
            raise UnsupportedError(f"X: {x.type} must have an even, known last size")
        x, y = op.add_all(Split, x, -1, (size // 2, size // 2))
    op.make(Mul, op.add(Swish, x), y)


@imports("elementwise_heaviside")
def heaviside(op: Context) -> None:
    """0 for negative, 1 for positive elements, and `y` at 0; NaN stays NaN."""
    x, y = broadcast_inputs(op)
    dtype = x.type.element_type.dtype.type
    sign = op.add(Where, op.add(Less, dtype(0), x), dtype(1), dtype(0))
    result = op.add(Where, op.add(Equal, x, dtype(0)), y, sign)
    if x.type.element_type in FLOATS:
        op.make(Where, op.add(IsNaN, x), x, result)
    else:
        op.define(result)


@imports("cross")
def cross(op: Context) -> None:
    """Import `cross`: cross products along an axis of size 3, by default the first such axis."""
    x, y = op.input(), op.input("Y")
    axis = op.integer("dim", _NO_AXIS)
    if axis == _NO_AXIS:
        axis = next((a for a, size in enumerate(x.type.shape or ()) if size == 3), _NO_AXIS)
    if axis == _NO_AXIS:
        raise UnsupportedError(f"X: {x.type} must have an axis of size 3")
    a, b = (op.add_all(Split, part, axis, (1, 1, 1)) for part in (x, y))
    parts = [
        op.add(Sub, op.add(Mul, a[i - 2], b[i - 1]), op.add(Mul, a[i - 1], b[i - 2]))
        for i in range(3)
    ]
    op.make(Concat, parts=parts, axis=axis)


@imports("kron")
def kron(op: Context) -> None:
    """Import `kron`: the Kronecker product; at most one size of the result may be unknown."""
    x, y = op.input(), op.input("Y")
    rank = max(op.rank(x), op.rank(y))
    if op.rank(x) < rank:
        x = op.add(Unsqueeze, x, tuple(range(rank - op.rank(x))))
    elif op.rank(y) < rank:
        y = op.add(Unsqueeze, y, tuple(range(rank - op.rank(y))))
    sizes = [[s if isinstance(s, int) else -1 for s in part.type.shape or ()] for part in (x, y)]
    shape = tuple(-1 if -1 in pair else pair[0] * pair[1] for pair in zip(*sizes, strict=True))
    if shape.count(-1) > 1:
        raise UnsupportedError(f"X: the sizes of {x.type} and {y.type} must be known but for one")
    x_spread = op.add(Unsqueeze, x, tuple(range(1, 2 * rank, 2)))
    y_spread = op.add(Unsqueeze, y, tuple(range(0, 2 * rank, 2)))
    op.make(Reshape, op.add(Mul, x_spread, y_spread), shape)
