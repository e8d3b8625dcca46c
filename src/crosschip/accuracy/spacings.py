"""Errors of operators with intermediates near 1, in spacings of their element type at 1."""

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
"""The arrays of each slot; several if the slot is variadic."""

WEIGHTS = ("weight", "recurrence_weight", "bias", "peephole")
"""The slots of the weights of recurrent operations."""

_STEPS = 4.0
"""The roundings of numbers near 1 in one step of a recurrent operation."""

_GATED = frozenset({"SWISH", "GELU", "MISH"})

Normalization = LayerNormalization | GroupNormalization | InstanceNormalization


def spacings_near_one(operation: Operator, arrays: Arrays) -> float:
    """Return the absolute error of a result, in spacings at 1.

    The error is 1 by default. If an intermediate near 1 is multiplied by an input or parameter, the
    error is the magnitude of this factor. A step of a recurrent operation has several roundings,
    scaled by its weights. A variance computed in one pass loses digits to cancellation, and its
    error is scaled. An operand that is rounded to fewer bits has an error of half a step of these.
    """
    if isinstance(operation, Elu | Celu | Selu):
        gamma = operation.gamma if isinstance(operation, Selu) else 1.0
        return max(1.0, abs(operation.alpha * gamma))
    if isinstance(operation, DynamicQuantizeLSTM):
        return max(1.0, _byte_steps(arrays))
    if isinstance(operation, Recurrent):
        weights = (_max_abs(a) for slot in WEIGHTS for a in arrays.get(slot, ()))
        return _STEPS * max([1.0, *weights])
    if operation.type in _GATED:
        return max([1.0, *(_max_abs(array) for each in arrays.values() for array in each)])
    if isinstance(operation, Normalization):
        scales = (_max_abs(array) for array in arrays.get("scale", ()))
        return max([1.0, *scales]) * max(1.0, _cancellation(operation, arrays["input"][0]))
    if isinstance(operation, MatMulNBits):
        return max(1.0, _low_bit_error(operation, arrays))
    return 1.0


def _byte_steps(arrays: Arrays) -> float:
    """Return the error of gates whose operands are each off by a step of 8 bits, in spacings."""
    operands = (array for slot in ("input", "initial_hidden") for array in arrays.get(slot, ()))
    reals = max([1.0, *map(_max_abs, operands)])
    weights = max(
        255 * _max_abs(arrays[f"{slot}_scale"][0]) for slot in ("weight", "recurrence_weight")
    )
    steps, _, size = arrays["input"][0].shape
    terms = size + arrays["recurrence_weight"][0].shape[2]
    return float(steps * terms * weights * 2 * reals / 255 / epsilon(ElementType.FLOAT32))


def _low_bit_error(operation: MatMulNBits, arrays: Arrays) -> float:
    """Return the error of a product with `x` in the fewest allowed bits, in spacings."""
    step = {2: 2.0**-10, 3: 2.0**-7, 4: 1 / 127}.get(operation.accuracy_level, 0.0)
    x = arrays["x"][0]
    zeros = arrays.get("zero_point", ())
    furthest = float(2**operation.bits) + (_max_abs(zeros[0]) if zeros else 0.0)
    weight = furthest * _max_abs(arrays["scale"][0])
    error = step / 2 * _max_abs(x) * weight * operation.size
    return error / epsilon(operation.outputs[0].type.element_type)


def _cancellation(operation: Normalization, input: Array) -> float:
    """Return a bound of the error factor of a variance as `mean(x * x) - mean(x) ** 2`."""
    if isinstance(operation, LayerNormalization):
        rows = math.prod(input.shape[: operation.begin_norm_axis % input.ndim])
    else:
        count = operation.groups if isinstance(operation, GroupNormalization) else input.shape[1]
        rows = input.shape[0] * count
    if input.size == 0:
        return 1.0
    groups = input.astype(np.float64).reshape(rows, -1)
    return _max_abs(np.square(groups).max(1) / (groups.var(1) + operation.epsilon))


def _max_abs(array: Array) -> float:
    """Return the largest absolute value of the finite elements."""
    wide = np.abs(array.astype(np.float64))
    return float(wide[np.isfinite(wide)].max(initial=0.0))
