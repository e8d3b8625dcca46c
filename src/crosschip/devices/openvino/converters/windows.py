"""Arguments of OpenVINO operations for windows that slide over images."""

from __future__ import annotations

from typing import Any

from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv, ConvTranspose
from crosschip.ops.standard.integers import ConvInteger
from crosschip.ops.standard.pooling import Pool

_AUTO_PAD = {
    AutoPad.NONE: "explicit",
    AutoPad.SAME: "same_upper",
    AutoPad.VALID: "valid",
    AutoPad.SAME_LOWER: "same_lower",
}


def window_arguments(op: Conv | ConvInteger | ConvTranspose | Pool) -> dict[str, Any]:
    """Return the arguments that describe windows: strides, padding and its rule."""
    return {
        "strides": op.strides,
        "pads_begin": op.pads[::2],
        "pads_end": op.pads[1::2],
        "auto_pad": _AUTO_PAD[op.auto_pad],
    }
