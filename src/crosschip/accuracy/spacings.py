"""Errors of operators that go through numbers near 1, in spacings of their element type there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.accuracy.epsilon import epsilon
from crosschip.ir import Array, ElementType
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Celu, Elu, Selu
from crosschip.ops.standard.matrix import MatMulNBits
from crosschip.ops.standard.normalization import (
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
)
from crosschip.ops.standard.recurrent import DynamicQuantizeLSTM, Recurrent

Arrays = Mapping[str, Sequence[Array]]
"""The filling of each slot: one array, or several if it takes many."""

WEIGHTS = ("weight", "recurrence_weight", "bias", "peephole")
"""The slots of the weights of recurrent networks."""

_STEPS = 4.0
"""The roundings of numbers near 1 in one step of a recurrent network."""

_GATED = frozenset({"SWISH", "GELU", "MISH"})

Normalization = LayerNormalization | GroupNormalization | InstanceNormalization


def spacings_near_one(operation: Operator, arrays: Arrays) -> float:
    """The spacings by which a result may be off, whatever its size.

    One, and where a factor of the input, or what a parameter is multiplied by, is as exact as 1, as
    many as these are large. A step of a recurrent network adds and multiplies several such numbers
    and its weights. A variance that is computed in one pass has lost some digits, times what scales
    it. A factor that may be held in fewer bits is off by half a step of them.
    """
    if isinstance(operation, Elu | Celu | Selu):
        gamma = operation.gamma if isinstance(operation, Selu) else 1.0
        return max(1.0, abs(operation.alpha * gamma))
    if isinstance(operation, DynamicQuantizeLSTM):
        return max(1.0, _byte_steps(arrays))
    if isinstance(operation, Recurrent):
        weights = (_largest(a) for slot in WEIGHTS for a in arrays.get(slot, ()))
        return _STEPS * max([1.0, *weights])
    if operation.type in _GATED:
        return max([1.0, *(_largest(array) for each in arrays.values() for array in each)])
    if isinstance(operation, Normalization):
        scales = (_largest(array) for array in arrays.get("scale", ()))
        return max([1.0, *scales]) * max(1.0, _lost(operation, arrays["input"][0]))
    if isinstance(operation, MatMulNBits):
        return max(1.0, _coarse(operation, arrays))
    return 1.0


def _byte_steps(arrays: Arrays) -> float:
    """The error of gates where all that goes into them is a step of a byte off, in spacings."""
    operands = (array for slot in ("input", "initial_hidden") for array in arrays.get(slot, ()))
    reals = max([1.0, *map(_largest, operands)])
    weights = max(
        255 * _largest(arrays[f"{slot}_scale"][0]) for slot in ("weight", "recurrence_weight")
    )
    steps, _, size = arrays["input"][0].shape
    terms = size + arrays["recurrence_weight"][0].shape[2]
    return float(steps * terms * weights * 2 * reals / 255 / epsilon(ElementType.FLOAT32))


def _coarse(operation: MatMulNBits, arrays: Arrays) -> float:
    """The error of a product whose one factor is held in as few bits as it may, in spacings."""
    step = {2: 2.0**-10, 3: 2.0**-7, 4: 1 / 127}.get(operation.accuracy_level, 0.0)
    x = arrays["x"][0]
    zeros = arrays.get("zero_point", ())
    furthest = float(2**operation.bits) + (_largest(zeros[0]) if zeros else 0.0)
    weight = furthest * _largest(arrays["scale"][0])
    error = step / 2 * _largest(x) * weight * operation.size
    return error / epsilon(operation.outputs[0].type.element_type)


def _lost(operation: Normalization, input: Array) -> float:
    """The digits lost in a variance that is computed as `mean(x * x) - mean(x) ** 2`, at most."""
    if isinstance(operation, LayerNormalization):
        rows = math.prod(input.shape[: operation.begin_norm_axis % input.ndim])
    else:
        each = operation.groups if isinstance(operation, GroupNormalization) else input.shape[1]
        rows = input.shape[0] * each
    if input.size == 0:
        return 1.0
    groups = input.astype(np.float64).reshape(rows, -1)
    return _largest(np.square(groups).max(1) / (groups.var(1) + operation.epsilon))


def _largest(array: Array) -> float:
    """The largest of the finite numbers, by size."""
    wide = np.abs(array.astype(np.float64))
    return float(wide[np.isfinite(wide)].max(initial=0.0))
