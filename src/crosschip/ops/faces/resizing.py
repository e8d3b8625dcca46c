"""Names and codes of resizing in other systems."""

from __future__ import annotations

from typing import cast

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule, refusal
from crosschip.ops.faces.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.ops.faces.rules import MustBe, NumberedFlag, Told, number, value_in
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest


class NewSize(Rule):
    """The height, or the width, of the output.

    Args:
        place: where in the shape it is.
    """

    slot = "shape"

    def __init__(self, place: int) -> None:
        self._place = place

    def inward(self, operand: Operand | None, use: Inward) -> None:
        if operand is None:
            raise ModelError("shape: the new height and width must be given")
        size = int(number(operand, self.slot))
        use.slots[self.slot] = (*cast(tuple[int, ...], use.slots.get(self.slot, ())), size)

    def outward(self, use: Outward) -> Operand | None:
        sizes = value_in(use, self.slot)
        return constant(sizes[self._place : self._place + 1], f"{use.operation.name}.size")


class Coordinates(Rule):
    """The places in the input that pixels of the output are at."""

    slot = "align_mode"
    text = "COORDINATE_TRANSFORM_MODE is one of 0 ASYMMETRIC, 1 align_corners, 2 HALF_PIXEL"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        mode = 0 if operand is None else number(operand, self.slot)
        if mode not in (0, 1, 2):
            raise ModelError(f"{self.slot}: is {mode:g}, but there are 0, 1, 2")
        use.slots["align_corners"] = mode == 1
        use.slots[self.slot] = AlignMode.ASYMMETRIC if mode == 0 else AlignMode.HALF_PIXEL

    def outward(self, use: Outward) -> Operand | None:
        corners = bool(value_in(use, "align_corners"))
        mode = AlignMode(int(value_in(use, self.slot).item()))
        numbers = {AlignMode.ASYMMETRIC: 0, AlignMode.HALF_PIXEL: 2}
        if not corners and mode not in numbers:
            raise refusal(use, self.slot, f"there is no number for {mode.name}")
        found = np.array([1 if corners else numbers[mode]], np.int32)
        return constant(found, f"{use.operation.name}.mode")


faces(
    ResizeNearest,
    nnadapter=NNAdapter(68, operands=("input", "shape", "scales", "align_corners")),
    hdi=(NodeType.RESIZE,),
    onnx=("Resize", "Upsample"),
)

faces(
    ResizeLinear,
    nnadapter=NNAdapter(69, operands=("input", "shape", "scales", "align_corners", "align_mode")),
    nnrt=(
        NNRt(
            43,
            "RESIZE_BILINEAR",
            inputs=(ChannelsLast("input"),),
            parameters={
                "NEW_HEIGHT": NewSize(0),
                "NEW_WIDTH": NewSize(1),
                "PRESERVE_ASPECT_RATIO": MustBe("PRESERVE_ASPECT_RATIO", 0),
                "COORDINATE_TRANSFORM_MODE": Coordinates(),
                "EXCLUDE_OUTSIDE": NumberedFlag("exclude_outside"),
            },
            given=(Told("align_corners"), ChannelsLastOutput()),
        ),
    ),
    hdi=(NodeType.RESIZE,),
    onnx=("Resize", "Upsample"),
)

faces(
    ResizeCubic,
    onnx=("Resize",),
)
