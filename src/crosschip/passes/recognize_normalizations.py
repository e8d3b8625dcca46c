"""Normalizations that are written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from crosschip.ir import Operand, Operation
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Pow, Sub
from crosschip.ops.standard.normalization import LayerNormalization, RMSNormalization
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.unary import Reciprocal, Rsqrt, Sqrt, Square
from crosschip.passes.recognizing import Found, Parts, Recognize, number


@dataclass(frozen=True)
class RecognizeNormalizations(Recognize):
    """Makes a `LAYER_NORMALIZATION` or an `RMS_NORMALIZATION` of its parts.

    1. `(x - m) / sqrt(v + epsilon) * scale + bias`, with or without the bias; `m` is the mean of
       `x`, and `v` that of the squares of `x - m`, over the last axes.
    2. `x / sqrt(q + epsilon) * scale`, where `q` is the mean of the squares of `x`.

    The division may be a product with the inverse, however that is written. Scale and bias are
    constants of the sizes of the axes.
    """

    def find(self, parts: Parts, last: Operator) -> Found | None:
        scaled, bias = (last, None)
        if isinstance(last, Add):
            sum_, bias = _with_constant(last)
            multiplied = parts.of(sum_, Mul)
            if multiplied is None:
                return None
            scaled = multiplied
        if not isinstance(scaled, Mul):
            return None
        normal, scale = _with_constant(scaled)
        divided = _divided(parts, normal)
        if divided is None or scale is None:
            return None
        tail = [*divided.parts, scaled] if bias is None else [*divided.parts, scaled, last]
        x, axis = divided.input, divided.axis
        sizes = shape_of(x)[axis:]
        if any(shape_of(each) != sizes for each in (scale, bias) if each is not None):
            return None
        if divided.is_centred:
            return Found(tail, LayerNormalization, [x, scale, bias, axis, divided.epsilon])
        if bias is not None:
            return None
        return Found(tail, RMSNormalization, [x, scale, axis, divided.epsilon])


class _Divided(NamedTuple):
    """Numbers divided by their deviation, from their mean or from 0.

    Attributes:
        input: the numbers.
        axis: the first axis of those that the mean is over, counted from the last one.
        epsilon: what is added under the root.
        is_centred: whether the mean is subtracted.
        parts: the operations that compute it.
    """

    input: Operand
    axis: int
    epsilon: float
    is_centred: bool
    parts: Sequence[Operation]


def _divided(parts: Parts, normal: Operand | None) -> _Divided | None:
    division = parts.of(normal, Div, Mul)
    if division is None:
        return None
    first, second = division.inputs[:2]
    ways = [(first, second)] if isinstance(division, Div) else [(first, second), (second, first)]
    for above, below in ways:
        root = _root(parts, below, inverse=isinstance(division, Mul))
        if root is None or above is None:
            continue
        raised, roots = root
        addition = parts.of(raised, Add)
        if addition is None:
            continue
        mean, epsilon = _with_constant(addition)
        averaged = parts.of(mean, ReduceMean)
        axis = None if averaged is None else _last_axes(averaged)
        added = number(epsilon)
        if averaged is None or axis is None or added is None or added < 0:
            continue
        source = averaged.inputs[0]
        squared = None if source is None else _squared(parts, source)
        if squared is None:
            continue
        base, squares = squared
        middle = [*squares, averaged, addition, *roots, division]
        centred = parts.of(base, Sub)
        if centred is not None:
            found = _centred(parts, centred, axis)
            others = [] if above is base else [parts.of(above, Sub)]
            alike = all(o is not None and o.inputs[:2] == centred.inputs[:2] for o in others)
            if found is not None and alike:
                x, mean_of = found
                subtractions = dict.fromkeys([centred, *(o for o in others if o is not None)])
                return _Divided(x, axis, added, True, [mean_of, *subtractions, *middle])
        if base is above:
            return _Divided(base, axis, added, False, middle)
    return None


def _root(
    parts: Parts, operand: Operand | None, *, inverse: bool
) -> tuple[Operand, Sequence[Operation]] | None:
    """What an operand is the square root of, or the inverse of that; and what computes it."""
    operation = parts.of(operand, Sqrt, Rsqrt, Pow, Reciprocal, Div)
    if operation is None:
        return None
    if inverse and isinstance(operation, Reciprocal | Div):
        below = operation.inputs[0] if isinstance(operation, Reciprocal) else operation.inputs[1]
        if isinstance(operation, Div) and number(operation.inputs[0]) != 1:
            return None
        root = _root(parts, below, inverse=False)
        return None if root is None else (root[0], [*root[1], operation])
    base = operation.inputs[0]
    is_root = isinstance(operation, Rsqrt if inverse else Sqrt)
    if isinstance(operation, Pow):
        is_root = number(operation.inputs[1]) == (-0.5 if inverse else 0.5)
    return (base, [operation]) if is_root and base is not None else None


def _squared(parts: Parts, operand: Operand) -> tuple[Operand, Sequence[Operation]] | None:
    """What an operand is the square of, and what computes it."""
    operation = parts.of(operand, Mul, Pow, Square)
    base = None if operation is None else operation.inputs[0]
    if operation is None or base is None:
        return None
    square = parts.product(operand, (base,))
    return (base, square.parts) if square is not None and square.is_(1.0, base, base) else None


def _centred(parts: Parts, subtraction: Operator, axis: int) -> tuple[Operand, Operation] | None:
    """The numbers from which an operation subtracts their mean, and what computes that."""
    x, mean = subtraction.inputs[:2]
    averaged = parts.of(mean, ReduceMean)
    if averaged is None or x is None or averaged.inputs[0] is not x:
        return None
    return (x, averaged) if _last_axes(averaged) == axis else None


def _last_axes(operation: Operator) -> int | None:
    """The first of the last axes, counted from the last one, if the mean is over those."""
    assert isinstance(operation, ReduceMean), "asked for means only"
    rank = len(shape_of(operation.input))
    axes = sorted({axis % rank for axis in operation.axes or range(rank)}) if rank else []
    if not axes or not operation.keepdim or axes != list(range(axes[0], rank)):
        return None
    return axes[0] - rank


def _with_constant(operation: Operator) -> tuple[Operand | None, Operand | None]:
    """The two operands of an operation, the one that is constant last; `None` if none is."""
    first, second = operation.inputs[:2]
    if second is not None and second.is_constant:
        return first, second
    if first is not None and first.is_constant:
        return second, first
    return None, None
