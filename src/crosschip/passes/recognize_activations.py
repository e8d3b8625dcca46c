"""Activations that are written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt

from crosschip.ir import Operand, Operation
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.activation import Gelu, Sigmoid, Swish, Tanh
from crosschip.ops.standard.arithmetic import Add, Div, Mul
from crosschip.ops.standard.unary import Erf
from crosschip.passes.recognizing import Found, Parts, Recognize, one_of_two

_CUBIC = 0.044715


@dataclass(frozen=True)
class RecognizeActivations(Recognize):
    """Makes a `GELU` or a `SWISH` of its parts.

    1. `x * 0.5 * (1 + ERF(x / sqrt(2)))`, in whatever order it is multiplied.
    2. `x * 0.5 * (1 + TANH(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`, or with
       `x * (1 + 0.044715 * x ** 2)`.
    3. `x * SIGMOID(x)`.
    """

    def find(self, parts: Parts, last: Operator) -> Found | None:
        if not isinstance(last, Mul | Div):
            return None
        return _swish(parts, last) or _gelu(parts, last)


def _swish(parts: Parts, last: Operator) -> Found | None:
    first, second = last.inputs[:2]
    if not isinstance(last, Mul):
        return None
    for x, gate in ((first, second), (second, first)):
        sigmoid = parts.of(gate, Sigmoid)
        if sigmoid is not None and sigmoid.inputs[0] is x:
            return Found([sigmoid, last], Swish, [x])
    return None


def _gelu(parts: Parts, last: Operator) -> Found | None:
    factors = parts.below(last.outputs[0])
    for raised in factors:
        addition = parts.of(raised, Add)
        curve = None if addition is None else parts.of(one_of_two(addition, 1.0), Erf, Tanh)
        if addition is None or curve is None:
            continue
        for x in factors:
            whole = parts.product(last.outputs[0], (x, raised))
            inner = _inner(parts, curve, x)
            if whole is not None and inner is not None and whole.is_(0.5, x, raised):
                every = (*inner, curve, addition, *whole.parts)
                return Found(every, Gelu, [x, isinstance(curve, Tanh)])
    return None


def _inner(parts: Parts, curve: Operator, x: Operand) -> Sequence[Operation] | None:
    """The operations that make of `x` what the curve is taken of; `None` if it is not that."""
    argument = curve.inputs[0]
    assert argument is not None, "it is required"
    if isinstance(curve, Erf):
        scaled = parts.product(argument, (x,))
        return None if scaled is None or not scaled.is_(sqrt(1 / 2), x) else scaled.parts
    for total in parts.below(argument):
        addition = parts.of(total, Add)
        if addition is None:
            continue
        first, second = addition.inputs[:2]
        for one, other in ((first, second), (second, first)):
            if one is None or other is None:
                continue
            power = parts.product(other, (x,))
            scaled = parts.product(argument, (x, total))
            if power is None or scaled is None:
                continue
            is_cube = one is x and power.is_(_CUBIC, x, x, x)
            is_square = one_of_two(addition, 1.0) is other and power.is_(_CUBIC, x, x)
            outside = (total,) if is_cube else (x, total)
            if (is_cube or is_square) and scaled.is_(sqrt(2 / pi), *outside):
                return (*power.parts, addition, *scaled.parts)
    return None
