"""Names and codes of resizing in other systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from crosschip.ir import Array, ModelError, Operand, constant
from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.common import HDI_CODES
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    number,
    parameter_value,
    refusal,
    static_shape,
)
from crosschip.mapping.rules import Ignored, NumericFlag, PassThrough, RequiredValue, Selector
from crosschip.ops.numerics.resampling import AlignMode, Rounding
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest


class OutputSize(Rule):
    """The height or width of the output.

    Args:
        index: the index in slot `shape`.
    """

    slot = "shape"

    def __init__(self, index: int) -> None:
        self._index = index

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            raise ModelError("shape: the new height and width must be given")
        size = int(number(operand, self.slot))
        ctx.slots[self.slot] = (*cast(tuple[int, ...], ctx.slots.get(self.slot, ())), size)

    def export_operand(self, ctx: Export) -> Operand | None:
        sizes = _sizes(ctx)
        return constant(sizes[self._index : self._index + 1], f"{ctx.operation.name}.size")


def _sizes(ctx: Export) -> Array:
    """Return the new height and width.

    Where the operation has scales, its static output size is used if its ratio equals the scales.
    """
    scales = ctx.operation.operand("scales")
    if ctx.operation.operand("shape") is not None or scales is None:
        return parameter_value(ctx, "shape")
    image, output_size = (
        static_shape((o.type.shape or (None,))[2:])
        for o in (ctx.operation.operand("input"), *ctx.outputs)
        if o
    )
    if scales.value is None or image is None or output_size is None or 0 in output_size:
        raise refusal(ctx, "scales", "has no code for scales, but for sizes")
    ratios = (
        np.float32(np.array(image) / output_size),
        np.float32(1 / np.asarray(scales.value, float)),
    )
    if not np.array_equal(*ratios) and not parameter_value(ctx, "align_corners"):
        reason = f"has no code for scales that differ from {list(output_size)} / {list(image)}"
        raise refusal(ctx, "scales", reason)
    return np.array(output_size)


class CoordinateMode(Rule):
    """The mapping of output coordinates to input coordinates."""

    slot = "align_mode"
    text = "COORDINATE_TRANSFORM_MODE is one of 0 ASYMMETRIC, 1 align_corners, 2 HALF_PIXEL"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        mode = 0 if operand is None else number(operand, self.slot)
        if mode not in (0, 1, 2):
            raise ModelError(f"{self.slot}: is {mode:g}, but there are 0, 1, 2")
        ctx.slots["align_corners"] = mode == 1
        ctx.slots[self.slot] = AlignMode.ASYMMETRIC if mode == 0 else AlignMode.HALF_PIXEL

    def export_operand(self, ctx: Export) -> Operand | None:
        corners = bool(parameter_value(ctx, "align_corners"))
        mode = AlignMode(int(parameter_value(ctx, self.slot).item()))
        numbers = {AlignMode.ASYMMETRIC: 0, AlignMode.HALF_PIXEL: 2}
        if not corners and mode not in numbers:
            raise refusal(ctx, self.slot, f"has no code for {mode.name}")
        code = np.array([1 if corners else numbers[mode]], np.int32)
        return constant(code, f"{ctx.operation.name}.mode")


class PytorchCoordinateMode(CoordinateMode):
    """The mapping of coordinates, with PYTORCH_HALF_PIXEL, which maps a single pixel to 0."""

    text = "coordinateTransformMode is one of 0 ASYMMETRIC, 1 align_corners, 2 PYTORCH_HALF_PIXEL"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        super().import_operand(operand, ctx)
        if ctx.slots[self.slot] is AlignMode.HALF_PIXEL:
            ctx.slots[self.slot] = AlignMode.PYTORCH_HALF_PIXEL

    def export_operand(self, ctx: Export) -> Operand | None:
        mode = AlignMode(int(parameter_value(ctx, self.slot).item()))
        equivalent = mode is AlignMode.HALF_PIXEL and 1 not in _sizes(ctx)
        if equivalent or mode is AlignMode.PYTORCH_HALF_PIXEL:
            corners = bool(parameter_value(ctx, "align_corners"))
            return constant(np.array(1 if corners else 2), f"{ctx.operation.name}.mode")
        if mode is AlignMode.HALF_PIXEL and not parameter_value(ctx, "align_corners"):
            raise refusal(ctx, self.slot, "has no code for HALF_PIXEL with a new size of 1")
        return super().export_operand(ctx)


class NearestMode(Rule):
    """The rounding to the nearest pixel; NNRt has no code for `Rounding.USUAL`."""

    slot = "rounding"
    text = "nearestMode is one of 0 and 2 UP_AT_HALF, 1 DOWN_AT_HALF, 3 DOWN, 4 UP"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot, HDI_CODES[Rounding]).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        usual = Rounding.UP_AT_HALF if parameter_value(ctx, "align_corners") else Rounding.DOWN
        rounding = Rounding(int(parameter_value(ctx, self.slot).item()))
        explicit = usual if rounding is Rounding.USUAL else rounding
        code = next(theirs for theirs, ours in HDI_CODES[Rounding].items() if ours == explicit)
        return constant(np.array(code), f"{ctx.operation.name}.nearest")


class CubicCoefficient(Rule):
    """The coefficient of cubic weights; 0 means the default for the mapping of coordinates."""

    slot = "coefficient"
    text = "a cubicCoeff of 0 is -0.5 for HALF_PIXEL and -0.75 else"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        coefficient = 0 if operand is None else number(operand, "cubicCoeff")
        half_pixel = ctx.slots["align_mode"] is AlignMode.PYTORCH_HALF_PIXEL
        default = -0.5 if half_pixel and not ctx.slots["align_corners"] else -0.75
        ctx.slots[self.slot] = coefficient or default

    def export_operand(self, ctx: Export) -> Operand | None:
        coefficient = parameter_value(ctx, self.slot)
        if not coefficient:
            raise refusal(ctx, self.slot, "has no code for 0, which means the default")
        return constant(coefficient, f"{ctx.operation.name}.coefficient")


def _resize_node(method: int, name: str, attributes: Mapping[str, str | Rule]) -> HDI:
    case = Selector("method", f"{method} {name}", method.__eq__, np.array(method))
    return HDI(
        120,
        "RESIZE",
        (ChannelsLast("input"),),
        {
            "method": case,
            "newHeight": OutputSize(0),
            "newWidth": OutputSize(1),
            "preserveAspectRatio": RequiredValue("preserveAspectRatio", 0),
            "coordinateTransformMode": PytorchCoordinateMode(),
            **attributes,
        },
        (Ignored("align_corners"), Ignored("scales"), ChannelsLastOutput()),
    )


_EXCLUDE = NumericFlag("exclude_outside")

map_operator(
    ResizeNearest,
    nnadapter=NNAdapter(68, operands=("input", "shape", "scales", "align_corners")),
    hdi=(_resize_node(1, "NEAREST", {"nearestMode": NearestMode()}),),
    onnx=("Resize", "Upsample"),
)

map_operator(
    ResizeLinear,
    nnadapter=NNAdapter(69, operands=("input", "shape", "scales", "align_corners", "align_mode")),
    nnrt=(
        NNRt(
            43,
            "RESIZE_BILINEAR",
            inputs=(ChannelsLast("input"),),
            parameters={
                "NEW_HEIGHT": OutputSize(0),
                "NEW_WIDTH": OutputSize(1),
                "PRESERVE_ASPECT_RATIO": RequiredValue("PRESERVE_ASPECT_RATIO", 0),
                "COORDINATE_TRANSFORM_MODE": CoordinateMode(),
                "EXCLUDE_OUTSIDE": _EXCLUDE,
            },
            other_rules=(Ignored("align_corners"), Ignored("scales"), ChannelsLastOutput()),
        ),
    ),
    hdi=(_resize_node(0, "LINEAR", {"excludeOutside": _EXCLUDE}),),
    onnx=("Resize", "Upsample"),
)

map_operator(
    ResizeCubic,
    hdi=(_resize_node(2, "CUBIC", {"cubicCoeff": CubicCoefficient(), "excludeOutside": _EXCLUDE}),),
    onnx=("Resize",),
)
