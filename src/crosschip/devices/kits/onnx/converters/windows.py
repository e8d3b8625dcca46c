"""Windows that slide over images, as ONNX writes them."""

from __future__ import annotations

from typing import Any

from crosschip.hal import Refusal
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv, ConvTranspose
from crosschip.ops.standard.integers import ConvInteger
from crosschip.ops.standard.pooling import Pool

_AUTO_PAD = {
    AutoPad.NONE: "NOTSET",
    AutoPad.SAME: "SAME_UPPER",
    AutoPad.VALID: "VALID",
    AutoPad.SAME_LOWER: "SAME_LOWER",
}


def window_attributes(
    op: Conv | ConvInteger | ConvTranspose | Pool,
) -> dict[str, Any]:
    """Return the attributes that describe windows: strides, padding and its rule."""
    pads = (*op.pads[::2], *op.pads[1::2]) if op.auto_pad is AutoPad.NONE else None
    return {"auto_pad": _AUTO_PAD[op.auto_pad], "pads": pads, "strides": op.strides}


def dilation_limit(op: Conv | Pool, *, always: bool = False) -> Refusal | None:
    if (always or op.auto_pad.keeps_size) and max(op.dilations) > 1:
        return Refusal("dilations", f"{list(op.dilations)} with auto_pad {op.auto_pad.name}")
    return None
