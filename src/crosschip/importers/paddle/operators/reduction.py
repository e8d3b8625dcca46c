"""Reductions over axes, cumulative sums and products, and norms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.operators.indexing import extract_diagonal
from crosschip.ir import ElementType, ModelError, Operand
from crosschip.ops import Operator
from crosschip.ops.standard.activation import LogSoftmax, Softmax
from crosschip.ops.standard.arithmetic import Add, Mul, Pow, Sub
from crosschip.ops.standard.comparison import Equal, LessEqual, NotEqual
from crosschip.ops.standard.indexing import GatherElements
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.logical import And, Not, Or, Where
from crosschip.ops.standard.reduction import (
    CumProd,
    CumSum,
    ReduceAll,
    ReduceAny,
    ReduceL1,
    ReduceL2,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)
from crosschip.ops.standard.unary import Abs, IsInf, IsNaN, Log, Neg

_REDUCTIONS: dict[str, type[Operator]] = {
    "reduce_mean": ReduceMean,
    "reduce_sum": ReduceSum,
    "reduce_max": ReduceMax,
    "reduce_min": ReduceMin,
    "reduce_prod": ReduceProd,
    "reduce_amax": ReduceMax,
    "reduce_amin": ReduceMin,
    "reduce_all": ReduceAll,
    "reduce_any": ReduceAny,
}


def _reduction(operator: type[Operator]) -> Callable[[Context], None]:
    def reduce(op: Context) -> None:
        is_all = op.flag("reduce_all", False) or op.input().type.shape == ()
        axes = () if is_all else op.integers("dim", ())
        op.make(operator, _input(op, operator), axes, keepdim=op.flag("keep_dim", False))

    return reduce


def _input(op: Context, operator: type[Operator]) -> Operand:
    """Cast the input to the element type of the result; sums of bool are int64."""
    x = op.input()
    is_count = operator is ReduceSum and x.type.element_type is ElementType.BOOL
    default = ElementType.INT64 if is_count else x.type.element_type
    return op.as_type(x, op.element_type("out_dtype") or default)


for _name, _operator in _REDUCTIONS.items():
    imports(_name)(_reduction(_operator))


@imports("cumsum")
def cumsum(op: Context) -> None:
    """Cumulative sums; in Paddle a single element is its own sum, even an exclusive one."""
    x, axis = op.input(), op.integer("axis", -1)
    is_single = x.type.static_shape is not None and math.prod(x.type.static_shape) == 1
    if op.flag("flatten", False):
        x, axis = op.add(Reshape, x, (-1,)), 0
    if is_single:
        op.define(x)
    else:
        exclusive, reverse = op.flag("exclusive", False), op.flag("reverse", False)
        op.make(CumSum, x, axis, exclusive=exclusive, reverse=reverse)


@imports("logsumexp")
def logsumexp(op: Context) -> None:
    axes = () if op.flag("reduce_all", False) else op.integers("axis", ())
    op.make(ReduceLogSumExp, op.input(), axes, keepdim=op.flag("keepdim", False))


@imports("mean")
def mean(op: Context) -> None:
    op.make(ReduceMean, op.input(), (), keepdim=False)


@imports("p_norm")
def p_norm(op: Context) -> None:
    axes = () if op.flag("asvector", False) else (op.integer("axis", -1),)
    norm(op, op.input(), op.real("porder", 2.0), axes, keepdim=op.flag("keepdim", False))


def norm(op: Context, x: Operand, order: float, axes: tuple[int, ...], *, keepdim: bool) -> None:
    """Set `Out` to `sum(|x| ** p) ** (1 / p)`, a maximum or minimum, or a count of nonzeros."""
    arguments: dict[str, Any] = {"axes": axes, "keepdim": keepdim}
    if order == 0.0:
        nonzero = op.as_type(op.add(NotEqual, x, 0.0), x.type.element_type)
        op.make(ReduceSum, nonzero, **arguments)
    elif math.isinf(order):
        op.make(ReduceMax if order > 0 else ReduceMin, op.add(Abs, x), **arguments)
    elif order == 1.0:
        op.make(ReduceL1, x, **arguments)
    elif order == 2.0:
        op.make(ReduceL2, x, **arguments)
    else:
        total = op.add(ReduceSum, op.add(Pow, op.add(Abs, x), order), **arguments)
        op.make(Pow, total, 1 / order)


@imports("frobenius_norm")
def frobenius_norm(op: Context) -> None:
    axes = () if op.flag("reduce_all", False) else op.integers("dim", ())
    op.make(ReduceL2, op.input(), axes, keepdim=op.flag("keep_dim", False))


@imports("squared_l2_norm")
def squared_l2_norm(op: Context) -> None:
    op.make(Reshape, op.add(ReduceSumSquare, op.input(), (), keepdim=False), (1,))


@imports("cumprod")
def cumprod(op: Context) -> None:
    exclusive, reverse = op.flag("exclusive", False), op.flag("reverse", False)
    op.make(CumProd, op.input(), op.integer("dim"), exclusive=exclusive, reverse=reverse)


@imports("softmax_with_cross_entropy")
def softmax_with_cross_entropy(op: Context) -> None:
    """Compute the cross entropy with class indices or, if `soft_label`, class probabilities."""
    logits, axis = op.input("Logits"), op.integer("axis", -1)
    label = op.input("Label")
    if op.flag("use_softmax", True):
        logarithm = op.add(LogSoftmax, logits, axis)
        op.make(Softmax, logits, axis, output="Softmax")
    else:
        logarithm = op.add(Log, logits)
        op.define(logits, "Softmax")
    if op.flag("soft_label", False):
        total = op.add(ReduceSum, op.add(Mul, label, logarithm), (axis,), keepdim=True)
        op.make(Neg, total, output="Loss")
        return
    if op.rank(label) < op.rank(logits):
        label = op.add(Unsqueeze, label, (axis % op.rank(logits),))
    ignored = np.array(op.integer("ignore_index", -100), label.type.element_type.dtype)
    is_ignored = op.add(Equal, label, ignored)
    index = op.add(Where, is_ignored, np.zeros((), ignored.dtype), label)
    loss = op.add(Neg, op.add(GatherElements, logarithm, index, axis))
    zero = np.zeros((), loss.type.element_type.dtype)
    op.make(Where, is_ignored, zero, loss, output="Loss")


@imports("equal_all")
def equal_all(op: Context) -> None:
    """Import `equal_all`: whether two tensors have equal shapes and elements."""
    x, y = op.input(), op.input("Y")
    if x.type.static_shape is not None and y.type.static_shape not in (None, x.type.static_shape):
        op.make_constant(np.array(False))
    else:
        op.make(ReduceAll, op.add(Equal, x, y), (), keepdim=False)


@imports("allclose")
def allclose(op: Context) -> None:
    op.make(ReduceAll, _is_close(op), (), keepdim=False)


@imports("isclose")
def isclose(op: Context) -> None:
    op.define(_is_close(op))


def _is_close(op: Context) -> Operand:
    """Return where `|x - y| <= atol + rtol * |y|`, also for equal infinities and optionally NaN."""
    x, y = op.input("Input"), op.input("Other")
    relative, absolute = (_tolerance(op, name) for name in ("rtol", "atol"))
    distance = op.add(Abs, op.add(Sub, x, y))
    limit = op.add(Add, op.add(Mul, op.add(Abs, y), relative), absolute)
    finite = op.add(And, op.add(LessEqual, distance, limit), op.add(Not, op.add(IsInf, limit)))
    close = op.add(Or, op.add(Equal, x, y), finite)
    if op.flag("equal_nan", False):
        close = op.add(Or, close, op.add(And, op.add(IsNaN, x), op.add(IsNaN, y)))
    return close


def _tolerance(op: Context, name: str) -> float:
    """Return a float that is a string in Paddle 2."""
    try:
        return float(op.text(name, "1e-05" if name == "rtol" else "1e-08"))
    except ModelError:
        return op.real(name)


@imports("trace")
def trace(op: Context) -> None:
    """Import `trace`: the sums of diagonals; the lower of the two axes has the rows."""
    op.make(ReduceSum, extract_diagonal(op, in_order=True), (-1,), keepdim=False)


@imports("pd_op.trace")
def trace_of_paddle3(op: Context) -> None:
    """Import `pd_op.trace`: the sums of diagonals; `axis1` has the rows."""
    op.make(ReduceSum, extract_diagonal(op), (-1,), keepdim=False)
