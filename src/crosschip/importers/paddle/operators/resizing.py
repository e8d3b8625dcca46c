"""Resampling of images."""

from __future__ import annotations

from typing import Any

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.operators.windows import expect_channels_first
from crosschip.importers.paddle.table import imports
from crosschip.ir import UnsupportedError
from crosschip.ops.resizing import AlignMode, ResizeLinear, ResizeNearest


@imports("nearest_interp_v2")
def nearest_interp_v2(op: Context) -> None:
    op.make(ResizeNearest, op.input(), **_target(op))


@imports("bilinear_interp_v2")
def bilinear_interp_v2(op: Context) -> None:
    mode = AlignMode.ASYMMETRIC if op.integer("align_mode", 1) else AlignMode.HALF_PIXEL
    arguments = _target(op)
    shape = arguments.get("shape")
    if isinstance(shape, tuple) and 1 in shape and mode is AlignMode.HALF_PIXEL:
        raise UnsupportedError(
            f"resampling to {shape}: Paddle takes the first pixel, not the middle"
        )
    op.make(ResizeLinear, op.input(), align_mode=mode, **arguments)


def _target(op: Context) -> dict[str, Any]:
    """The size to resample to, or the scales; a size in a tensor takes precedence over scales."""
    expect_channels_first(op, "data_layout")
    arguments: dict[str, Any] = {"align_corners": op.flag("align_corners", True)}
    if op.inputs("SizeTensor") or op.inputs("OutSize"):
        arguments["shape"] = op.integers_or_tensor("size", "SizeTensor", "OutSize")
    elif scales := _scales(op):
        arguments["scales"] = scales
    else:
        arguments["shape"] = (op.integer("out_h"), op.integer("out_w"))
    return arguments


def _scales(op: Context) -> tuple[float, ...]:
    """The scales of height and width; none unless they are positive."""
    scales = op.reals("scale", (), "Scale")
    if not scales or min(scales) <= 0:
        return ()
    return scales * 2 if len(scales) == 1 else scales
