"""Quantized tensors in operators: conversion to and from the reals that they represent.

A quantized tensor in a slot for reals represents `(integer - zero_point) * scale`. The operator
computes on these reals in float64, and the result is float32. If the output declares a
quantization, the result is rounded once to `clamp(round(real / scale) + zero_point)`, ties to even,
in the integer type of the first quantized input. A device may round the reals to float32 before it
computes; where they are compared or truncated, this changes more than the last digits. Operators
that only move elements keep their input's quantization.

Narrow floats can represent reals, too. They are rounded to the nearest value of their type instead
of to integers: `cast(clamp(real / scale + zero_point))`.
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType, ModelError, Operand, Quantization
from crosschip.ops.numerics.casting import SATURATING, cast


def value_type(operand: Operand) -> ElementType:
    """Return the type of an operand's values: float32 if quantized, else its element type."""
    if operand.type.quantization is None:
        return operand.type.element_type
    return ElementType.FLOAT32


def reals(array: Array, quantization: Quantization) -> Array:
    """Return the reals that quantized elements represent, in float64."""
    shape = _broadcast_shape(quantization, array.ndim)
    zero_point = np.array(quantization.zero_point, np.float64).reshape(shape)
    # All file formats store scales as float32, even if their text has more digits.
    scale = np.array(quantization.scale, np.float32).astype(np.float64).reshape(shape)
    return (array.astype(np.float64) - zero_point) * scale


def stored(array: Array, quantization: Quantization, element_type: ElementType) -> Array:
    """Return quantized elements for reals: the nearest, ties to even, clamped to the type's range.

    The division is in the reals' type, float32 or float64. NaN becomes the smallest integer, as in
    ONNX Runtime.
    """
    shape = _broadcast_shape(quantization, array.ndim)
    scale = np.array(quantization.scale, np.float32).astype(array.dtype).reshape(shape)
    zero_point = np.array(quantization.zero_point, np.float64).reshape(shape)
    if element_type in SATURATING:
        return cast(array / scale + zero_point.astype(array.dtype), element_type)
    low, high = limits(element_type)
    steps = np.rint(array / scale) + zero_point
    return np.clip(np.nan_to_num(steps, nan=low), low, high).astype(element_type.dtype)


def limits(element_type: ElementType) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer type."""
    name = element_type.value
    bits = int(name.lstrip("uint"))
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def check_zero_point(
    where: str, quantization: Quantization | None, element_type: ElementType
) -> None:
    """Raise ModelError if no element can have the zero point's value."""
    least, greatest = limits(element_type)
    for number in quantization.zero_point if quantization else ():
        if not least <= number <= greatest:
            raise ModelError(f"{where}the zero point {number} is beyond {element_type}")


def _broadcast_shape(quantization: Quantization, rank: int) -> tuple[int, ...]:
    """Return the shape in which scales broadcast along their axis."""
    if quantization.axis is None or not rank:
        return (1,) * rank
    return (-1,) + (1,) * (rank - 1 - quantization.axis % rank)
