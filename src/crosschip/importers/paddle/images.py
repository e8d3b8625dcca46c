"""Images: their layout, channels first inside and last in some models, and their padding."""

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
    """The images that an operator reads and makes, with channels first in between.

    Attributes:
        are_channels_last: whether the file has the channels last.
    """

    def __init__(self, op: Context, attribute: str = "data_format") -> None:
        """Read an operator's layout from an attribute.

        Raises:
            ModelError: there is no such layout.
        """
        layout = op.text(attribute, "NCHW")
        if layout not in _CHANNELS_FIRST + _CHANNELS_LAST:
            known = ", ".join(_CHANNELS_FIRST + _CHANNELS_LAST)
            raise ModelError(f"{attribute}: {layout!r} is not one of {known}")
        self._op = op
        self.are_channels_last = layout in _CHANNELS_LAST

    def input(self, slot: str) -> Operand:
        """The images in a slot, channels first."""
        images = self._op.input(slot)
        if not self._must_move(images):
            return images
        rank = self._op.rank(images)
        return self._op.add(Transpose, images, (0, rank - 1, *range(1, rank - 1)))

    def make(
        self,
        operator: type[Operator],
        images: Operand,
        *arguments: object,
        output: str = "Out",
        **named: Any,
    ) -> None:
        """Build the operation that makes images of images, in the layout of the file."""
        if not self._must_move(images):
            self._op.make(operator, images, *arguments, output=output, **named)
            return
        result = self._op.add(operator, images, *arguments, **named)
        rank = self._op.rank(images)
        self._op.make(Transpose, result, (0, *range(2, rank), 1), output=output)

    def _must_move(self, images: Operand) -> bool:
        return self.are_channels_last and self._op.rank(images) > 2


def padding(op: Context, rank: int = 2) -> tuple[AutoPad, tuple[int, ...]]:
    """The padding of images of so many axes: its rule, and the pixels before and after each."""
    algorithm = op.text("padding_algorithm", "EXPLICIT")
    if algorithm not in _ALGORITHMS:
        raise ModelError(f"padding_algorithm: {algorithm!r} is not one of {', '.join(_ALGORITHMS)}")
    pads = op.integers("paddings", (0,) * rank)
    if len(pads) == rank:
        pads = tuple(pad for pad in pads for _ in range(2))
    return _ALGORITHMS[algorithm], pads
