"""Windows that slide over images, as OpenVINO is told of them."""

from __future__ import annotations

from typing import Any

from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.integers import Conv2DInteger
from crosschip.ops.standard.pooling import Pool2D

_AUTO_PAD = {
    AutoPad.NONE: "explicit",
    AutoPad.SAME: "same_upper",
    AutoPad.VALID: "valid",
    AutoPad.SAME_LOWER: "same_lower",
}


def window_arguments(op: Conv2D | Conv2DInteger | Conv2DTranspose | Pool2D) -> dict[str, Any]:
    """The arguments that say where windows are."""
    top, bottom, left, right = op.pads
    return {
        "strides": op.strides,
        "pads_begin": (top, left),
        "pads_end": (bottom, right),
        "auto_pad": _AUTO_PAD[op.auto_pad],
    }
