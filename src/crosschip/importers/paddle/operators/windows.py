"""Padding of images, which convolutions and poolings share."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.ir import ModelError
from crosschip.ops.definition.windows import AutoPad

_ALGORITHMS = {"EXPLICIT": AutoPad.NONE, "SAME": AutoPad.SAME, "VALID": AutoPad.VALID}


def padding(op: Context) -> tuple[AutoPad, tuple[int, ...]]:
    """The padding of the image: its rule, and the pixels at the top, bottom, left and right."""
    algorithm = op.text("padding_algorithm", "EXPLICIT")
    if algorithm not in _ALGORITHMS:
        raise ModelError(f"padding_algorithm: {algorithm!r} is not one of {', '.join(_ALGORITHMS)}")
    pads = op.integers("paddings", (0, 0))
    if len(pads) == 2:
        height, width = pads
        pads = (height, height, width, width)
    return _ALGORITHMS[algorithm], pads
