"""Formulas of activation functions and normalizations."""

from __future__ import annotations

from math import pi, sqrt

from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.activation import Gelu, HardSigmoid, Swish
from crosschip.ops.standard.normalization import LayerNormalization, RMSNormalization
from crosschip.passes.recognition.pattern import Formula
from crosschip.passes.recognition.terms import (
    AnyNumber,
    Constant,
    Match,
    Mean,
    Root,
    Variable,
    clipped,
    erf,
    product,
    sigmoid,
    square,
    tanh,
)

_x = Variable()
_slope, _offset = AnyNumber(), AnyNumber()
_CUBIC, _FACTOR = 0.044715, sqrt(2 / pi)


HARD_SIGMOID = Formula(
    *(HardSigmoid, (_x, _slope, _offset), clipped(_x * _slope + _offset)),
    when=lambda match: not match[_x].is_constant,
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

_axis = Variable()
_scale, _bias, _epsilon = Constant(), Constant(), AnyNumber()

_centred = _x - Mean(_x, _axis)
_normal = _centred / Root(Mean(square(_centred), _axis) + _epsilon)


def _normalizes_all_axes(match: Match) -> bool:
    """Return whether scale and bias span the normalized axes, and epsilon is not negative."""
    sizes = shape_of(match[_x])[match[_axis] :]
    operands = [match.values.get(each) for each in (_scale, _bias)]
    return match[_epsilon] >= 0 and all(
        shape_of(each) == sizes for each in operands if each is not None
    )


LAYER_NORMALIZATION = Formula(
    *(LayerNormalization, (_x, _scale, _bias, _axis, _epsilon)),
    _normal * _scale + _bias,
    when=_normalizes_all_axes,
)

LAYER_NORMALIZATION_WITHOUT_BIAS = Formula(
    *(LayerNormalization, (_x, _scale, None, _axis, _epsilon)),
    _normal * _scale,
    when=_normalizes_all_axes,
)

RMS_NORMALIZATION = Formula(
    *(RMSNormalization, (_x, _scale, _axis, _epsilon)),
    _x / Root(Mean(square(_x), _axis) + _epsilon) * _scale,
    when=_normalizes_all_axes,
)

NORMALIZATIONS = (LAYER_NORMALIZATION, LAYER_NORMALIZATION_WITHOUT_BIAS, RMS_NORMALIZATION)
