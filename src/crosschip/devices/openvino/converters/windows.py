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


def window_arguments(
    op: Conv2D | Conv2DInteger | Conv2DTranspose | Pool2D, first: int = 0
) -> dict[str, Any]:
    """The arguments that say where windows are, on the axes of an image from `first` on."""
    return {
        "strides": op.strides[first:],
        "pads_begin": op.pads[2 * first :: 2],
        "pads_end": op.pads[2 * first + 1 :: 2],
        "auto_pad": _AUTO_PAD[op.auto_pad],
    }
