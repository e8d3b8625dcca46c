"""Patterns of activation functions."""

from __future__ import annotations

from math import pi, sqrt

from crosschip.ir.types import FLOATS
from crosschip.ops.standard.activation import Gelu, HardSigmoid, Swish
from crosschip.passes.recognition.pattern import Formula
from crosschip.passes.recognition.terms import (
    AnyNumber,
    Match,
    Variable,
    clipped,
    erf,
    product,
    sigmoid,
    tanh,
)

_x = Variable()
_slope, _offset = AnyNumber(), AnyNumber()
_CUBIC, _FACTOR = 0.044715, sqrt(2 / pi)


def _is_not_constant(match: Match) -> bool:
    return not match[_x].is_constant


HARD_SIGMOID = Formula(
    *(HardSigmoid, (_x, _slope, _offset), clipped(_x * _slope + _offset)),
    when=_is_not_constant,
    types=FLOATS,
)
"""NNRt supports a slope of 1/6 only; models with other slopes spell the formula out."""

SWISH = Formula(Swish, (_x,), _x * sigmoid(_x))

GELU = Formula(Gelu, (_x, False), product(0.5, 1 + erf(product(sqrt(1 / 2), _x)), _x))

GELU_BY_CUBE = Formula(
    *(Gelu, (_x, True)),
    product(0.5, 1 + tanh(product(_FACTOR, _x + product(_CUBIC, _x, _x, _x))), _x),
)

GELU_BY_SQUARE = Formula(
    *(Gelu, (_x, True)),
    product(0.5, 1 + tanh(product(_FACTOR, 1 + product(_CUBIC, _x, _x), _x)), _x),
)

ACTIVATIONS = (HARD_SIGMOID, SWISH, GELU, GELU_BY_CUBE, GELU_BY_SQUARE)
