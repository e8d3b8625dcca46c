"""Quantized tensors as operators see them: the reals that their integers stand for.

An operator computes on reals. Where a tensor that fills a slot for reals is quantized, it stands
for `(integer - zero_point) * scale`, the operator computes on that in float64, and the result is
float32. If the output declares a quantization, the result is rounded once to
`clamp(round(real / scale) + zero_point)`, ties to even, in the integer type of the first quantized
input. A device may round the reals to float32 before it computes on them, which changes more than
the last digits where they are compared or cut off. Operators that only move elements keep their
input's quantization.

Narrow floats can stand for reals as well. They are not rounded to integers, but to the nearest of
their type: `cast(clamp(real / scale + zero_point))`.
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType, ModelError, Operand, Quantization
from crosschip.ops.numerics.casting import SATURATING, cast


def value_type(operand: Operand) -> ElementType:
    """The type of an operand's values: float32 for a quantized one, else that of its elements."""
    if operand.type.quantization is None:
        return operand.type.element_type
    return ElementType.FLOAT32


def reals(array: Array, quantization: Quantization) -> Array:
    """The reals that quantized integers stand for, in float64."""
    along = _along(quantization, array.ndim)
    zero_point = np.array(quantization.zero_point, np.float64).reshape(along)
    # A scale is a float32 in every file format, whatever digits it is written with.
    scale = np.array(quantization.scale, np.float32).astype(np.float64).reshape(along)
    return (array.astype(np.float64) - zero_point) * scale


def stored(array: Array, quantization: Quantization, element_type: ElementType) -> Array:
    """The integers that stand for reals: the nearest, ties to even, clamped to the type's range.

    The division is in the reals' own type, float32 or float64. NaN becomes the least integer, as
    in ONNX Runtime.
    """
    along = _along(quantization, array.ndim)
    scale = np.array(quantization.scale, np.float32).astype(array.dtype).reshape(along)
    zero_point = np.array(quantization.zero_point, np.float64).reshape(along)
    if element_type in SATURATING:
        return cast(array / scale + zero_point.astype(array.dtype), element_type)
    low, high = limits(element_type)
    steps = np.rint(array / scale) + zero_point
    return np.clip(np.nan_to_num(steps, nan=low), low, high).astype(element_type.dtype)


def limits(element_type: ElementType) -> tuple[int, int]:
    """The least and the greatest integer of an integer type."""
    name = element_type.value
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def check_zero_point(
    where: str, quantization: Quantization | None, element_type: ElementType
) -> None:
    """Raise a `ModelError` for a zero point that no element can have."""
    least, greatest = limits(element_type)
    for number in quantization.zero_point if quantization else ():
        if not least <= number <= greatest:
            raise ModelError(f"{where}the zero point {number} is beyond {element_type}")


def _along(quantization: Quantization, rank: int) -> tuple[int, ...]:
    """The shape that lays scales along their axis."""
    if quantization.axis is None or not rank:
        return (1,) * rank
    return (-1,) + (1,) * (rank - 1 - quantization.axis % rank)
