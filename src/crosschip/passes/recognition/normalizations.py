"""Patterns of normalizations."""

from __future__ import annotations

from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.normalization import LayerNormalization, RMSNormalization
from crosschip.passes.recognition.pattern import Formula
from crosschip.passes.recognition.terms import (
    AnyNumber,
    Constant,
    Match,
    Variable,
    mean,
    root,
    square,
)

_x, _axis = Variable(), Variable()
_scale, _bias, _epsilon = Constant(), Constant(), AnyNumber()

_centred = _x - mean(_x, _axis)
_normal = _centred / root(mean(square(_centred), _axis) + _epsilon)


def _fits(match: Match) -> bool:
    """Return whether scale and bias span the normalized axes, and epsilon is not negative."""
    sizes = shape_of(match[_x])[match[_axis] :]
    operands = [match.values.get(each) for each in (_scale, _bias)]
    return match[_epsilon] >= 0 and all(
        shape_of(each) == sizes for each in operands if each is not None
    )


LAYER_NORMALIZATION = Formula(
    *(LayerNormalization, (_x, _scale, _bias, _axis, _epsilon)),
    _normal * _scale + _bias,
    when=_fits,
)

LAYER_NORMALIZATION_WITHOUT_BIAS = Formula(
    *(LayerNormalization, (_x, _scale, None, _axis, _epsilon)), _normal * _scale, when=_fits
)

RMS_NORMALIZATION = Formula(
    *(RMSNormalization, (_x, _scale, _axis, _epsilon)),
    _x / root(mean(square(_x), _axis) + _epsilon) * _scale,
    when=_fits,
)

NORMALIZATIONS = (LAYER_NORMALIZATION, LAYER_NORMALIZATION_WITHOUT_BIAS, RMS_NORMALIZATION)
