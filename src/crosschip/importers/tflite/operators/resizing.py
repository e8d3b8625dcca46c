"""Resampling of images with their channels last."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.options import (
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.numerics.resampling import AlignMode, Rounding
from crosschip.ops.standard.resizing import ResizeLinear, ResizeNearest


def _align_mode(half_pixel_centers: bool) -> AlignMode:
    return AlignMode.HALF_PIXEL if half_pixel_centers else AlignMode.ASYMMETRIC


@imports("RESIZE_BILINEAR")
def resize_bilinear(node: Node) -> Operand:
    options = node.options(ResizeBilinearOptions)
    resized = node.add(
        ResizeLinear,
        node.channels_first(node[0]),
        node[1],
        align_corners=bool(options.align_corners),
        align_mode=_align_mode(options.half_pixel_centers),
    )
    return node.channels_last(node.fit(resized, node.output()))


@imports("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest_neighbor(node: Node) -> Operand:
    """Import the nearest pixel; half-pixel centres are not shifted back by half a pixel."""
    options = node.options(ResizeNearestNeighborOptions)
    resized = node.add(
        ResizeNearest,
        node.channels_first(node[0]),
        node[1],
        align_corners=bool(options.align_corners),
        align_mode=_align_mode(options.half_pixel_centers),
        rounding=Rounding.UP_AT_HALF if options.half_pixel_centers else Rounding.USUAL,
    )
    return node.channels_last(resized)
