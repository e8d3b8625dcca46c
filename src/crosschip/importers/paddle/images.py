"""Layout and padding of images: operands are channels-first, some models are channels-last."""

from __future__ import annotations

from typing import Any

from crosschip.importers.paddle.context import Context
from crosschip.ir import ModelError, Operand
from crosschip.ops import Operator
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.layout import Transpose

_CHANNELS_FIRST = ("NCHW", "NCL", "NCDHW", "NC", "AnyLayout", "Undefined(AnyLayout)")
_CHANNELS_LAST = ("NHWC", "NLC", "NDHWC")
_ALGORITHMS = {"EXPLICIT": AutoPad.NONE, "SAME": AutoPad.SAME, "VALID": AutoPad.VALID}


class Images:
    """Transposes an operator's input and output images to channels-first and back.

    Attributes:
        channels_last: whether the images in the model are channels-last.
    """

    def __init__(self, op: Context, attribute: str = "data_format") -> None:
        """Read the layout from an attribute; raise ModelError if it is unknown."""
        layout = op.text(attribute, "NCHW")
        if layout not in _CHANNELS_FIRST + _CHANNELS_LAST:
            known = ", ".join(_CHANNELS_FIRST + _CHANNELS_LAST)
            raise ModelError(f"{attribute}: {layout!r} is not one of {known}")
        self._op = op
        self.channels_last = layout in _CHANNELS_LAST

    def input(self, slot: str) -> Operand:
        """Return the images in a slot, channels-first."""
        images = self._op.input(slot)
        if not self._needs_transpose(images):
            return images
        rank = self._op.rank(images)
        return self._op.add(Transpose, images, (0, rank - 1, *range(1, rank - 1)))

    def make(
        self,
        operator: type[Operator],
        images: Operand,
        *arguments: object,
        output: str = "Out",
        **keywords: Any,
    ) -> None:
        """Build an operation on images; its output has the layout of the model."""
        if not self._needs_transpose(images):
            self._op.make(operator, images, *arguments, output=output, **keywords)
            return
        result = self._op.add(operator, images, *arguments, **keywords)
        rank = self._op.rank(images)
        self._op.make(Transpose, result, (0, *range(2, rank), 1), output=output)

    def _needs_transpose(self, images: Operand) -> bool:
        return self.channels_last and self._op.rank(images) > 2


def padding(op: Context) -> tuple[AutoPad, tuple[int, ...]]:
    """Return the padding mode and the pads (top, bottom, left, right) of an image."""
    algorithm = op.text("padding_algorithm", "EXPLICIT")
    if algorithm not in _ALGORITHMS:
        raise ModelError(f"padding_algorithm: {algorithm!r} is not one of {', '.join(_ALGORITHMS)}")
    pads = op.integers("paddings", (0, 0))
    if len(pads) == 2:
        height, width = pads
        pads = (height, height, width, width)
    return _ALGORITHMS[algorithm], pads


def volume_padding(op: Context) -> tuple[AutoPad, tuple[int, ...]]:
    """The padding of a volume: its rule, and two numbers for each of depth, height and width."""
    algorithm = op.text("padding_algorithm", "EXPLICIT")
    if algorithm not in _ALGORITHMS:
        raise ModelError(f"padding_algorithm: {algorithm!r} is not one of {', '.join(_ALGORITHMS)}")
    pads = op.integers("paddings", (0, 0, 0))
    if len(pads) == 3:
        pads = tuple(number for pad in pads for number in (pad, pad))
    if len(pads) != 6:
        raise ModelError(f"paddings: must be 3 or 6 numbers, not {len(pads)}")
    return _ALGORITHMS[algorithm], pads
