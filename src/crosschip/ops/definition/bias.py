"""Checks of the bias that an operator adds to a product."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Dim, ElementType, Operand, Quantization, Shape
from crosschip.ops.definition.shapes import require_rank, unify_sizes


def check_bias(shape: Shape | None, channels: Dim) -> None:
    """Raise ValueError unless a bias may have one element per channel."""
    if shape is not None:
        unify_sizes(
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
