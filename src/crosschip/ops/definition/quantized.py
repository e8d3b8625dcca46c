"""Quantized tensors in operators: conversion to and from the reals that they represent.

A quantized tensor in a slot for reals represents `(integer - zero_point) * scale`. The operator
computes on these reals in float64, and the result is float32. If the output declares a
quantization, the result is rounded once to `clamp(round(real / scale) + zero_point)`, ties to even,
in the integer type of the first quantized input. A device may round the reals to float32 before it
computes; where they are compared or truncated, this changes more than the last digits. Operators
that only move elements keep their input's quantization.

If the output declares `Arithmetic.FIXED_POINT`, the reference computes integers instead, as
TensorFlow Lite's reference kernels do (`crosschip.ops.fixed_point`); other devices may compute
reals, which differ by a step.

Narrow floats can represent reals, too. They are rounded to the nearest value of their type instead
of to integers: `cast(clamp(real / scale + zero_point))`.
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Dim, ElementType, ModelError, Operand, Quantization, Shape
from crosschip.ir.types import NARROW_FLOATS
from crosschip.ops.definition.shapes import require_rank, unify
from crosschip.ops.numerics.casting import cast


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
    if element_type in NARROW_FLOATS:
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


def check_bias(shape: Shape | None, channels: Dim) -> None:
    """Raise ValueError unless a bias may have one element per channel."""
    if shape is not None:
        unify(
            require_rank(shape, 1, "bias")[0], channels, "bias: its size, and the output's channels"
        )


_ROUNDING = 2.0**-22
"""Relative error of the product of two float32 scales, rounded and printed."""

_LEAST = 2.0**-149
"""Absolute error of products so small that float32 has fewer digits."""


def check_quantized_bias(
    input: Operand, weight: Operand, bias: Operand | None, channel_axis: int = 0
) -> None:
    """Check that the scale of a quantized bias is the product of the input's and the weight's.

    Then integers can be accumulated without rescaling: the bias is int32 and symmetric, and
    `scale_bias[i] = scale_input * scale_weight[i]` within the rounding of float32, for the whole
    tensor or for each output channel `i`. A floating-point bias is not checked.

    Args:
        input: the operand that is multiplied by the weight.
        weight: the weight or filter.
        bias: the bias, one element per output channel; `None` if there is none.
        channel_axis: the weight's axis of output channels.

    Raises:
        ValueError: the rule is broken; the message starts with the slot.
    """
    quantization = None if bias is None else bias.type.quantization
    if bias is None or quantization is None:
        return
    unit, scales = input.type.quantization, weight.type.quantization
    if bias.type.element_type is not ElementType.INT32 or not quantization.symmetric:
        raise ValueError(f"bias: a quantized one must be symmetric int32, not {bias.type}")
    if unit is None or scales is None:
        raise ValueError("bias: is quantized, but input and weight are not both")
    if unit.axis is not None:
        raise ValueError("bias: is quantized, but the input has a scale for each index of an axis")
    _check_axis(weight, scales, channel_axis)
    expected = np.float64(np.float32(unit.scale[0])) * np.array(scales.scale, np.float32)
    if len(quantization.scale) != len(scales.scale):
        raise ValueError(
            f"bias: has {len(quantization.scale)} scales, but the weight has {len(scales.scale)}"
        )
    wrong = ~np.isclose(quantization.scale, expected, rtol=_ROUNDING, atol=_LEAST)
    if wrong.any():
        channel = int(wrong.argmax())
        raise ValueError(
            f"bias: its scale {quantization.scale[channel]:g} is not {expected[channel]:g}, that "
            f"of the input times that of the weight"
        )


def _check_axis(weight: Operand, scales: Quantization, channel_axis: int) -> None:
    if scales.axis is None or weight.type.shape is None:
        return
    if scales.axis % len(weight.type.shape) != channel_axis:
        raise ValueError(
            f"bias: is quantized, but the weight's scales run along axis {scales.axis}, not along "
            f"the output channels on axis {channel_axis}"
        )
