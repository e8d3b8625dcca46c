"""Resampling of images."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tflite.converters.table import (
    ANY_BYTES,
    BYTES,
    SINGLE,
    WORDS,
    channels_last_type,
    converts_images,
    same_quantization,
    shape_of,
    to_channels_first,
    to_channels_last,
    unary_forms,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal
from crosschip.ir import Array, Operand
from crosschip.ops.numerics.resampling import AlignMode, nearest
from crosschip.ops.standard.resizing import ResizeLinear, ResizeNearest


def _linear_limit(op: ResizeLinear) -> Refusal | None:
    if op.antialias or op.exclude_outside or op.align_mode is AlignMode.CROP:
        return Refusal("antialias", "or weights of other pixels are not computed")
    if _linear_options(op) is None:
        return Refusal("align_mode", f"{op.align_mode.name}: the pixels are others")
    return same_quantization(op)


@converts_images(
    ResizeLinear, limit=_linear_limit, nonempty=True, quantized=unary_forms(ANY_BYTES, WORDS)
)
def resize_linear(g: Graph, op: ResizeLinear) -> Operand:
    options = _linear_options(op)
    assert options is not None, "the limit requires it"
    return _resize(g, op, "RESIZE_BILINEAR", options)


def _nearest_limit(op: ResizeNearest) -> Refusal | None:
    if op.align_mode is AlignMode.CROP or _nearest_options(op) is None:
        return Refusal("align_mode", f"{op.align_mode.name}: the pixels are others")
    return None


@converts_images(ResizeNearest, types=SINGLE | BYTES, limit=_nearest_limit, nonempty=True)
def resize_nearest(g: Graph, op: ResizeNearest) -> Operand:
    options = _nearest_options(op)
    assert options is not None, "the limit requires it"
    return _resize(g, op, "RESIZE_NEAREST_NEIGHBOR", options)


def _resize(
    g: Graph, op: ResizeLinear | ResizeNearest, code: str, options: dict[str, bool]
) -> Operand:
    output = g.native(
        code,
        to_channels_last(g, op.input),
        g.int32(shape_of(op.outputs[0])[2:]),
        type=channels_last_type(op.outputs[0].type),
        **options,
    )
    return to_channels_first(g, output)


_OPTIONS = (
    {"align_corners": False, "half_pixel_centers": True},
    {"align_corners": False, "half_pixel_centers": False},
    {"align_corners": True, "half_pixel_centers": False},
)


def _coordinates(size: int, new: int, options: dict[str, bool]) -> Array:
    """Return the source coordinate of each target pixel, as TensorFlow Lite computes it."""
    target = np.arange(new, dtype=np.float32)
    if options["align_corners"]:
        return target * np.float32((size - 1) / (new - 1) if new > 1 else size / new)
    ratio = np.float32(size / new)
    if options["half_pixel_centers"]:
        return (target + np.float32(0.5)) * ratio - np.float32(0.5)
    return target * ratio


def _linear_options(op: ResizeLinear) -> dict[str, bool] | None:
    """Return the options that give the same coordinates; `None` if none do."""
    axes = op.static_axes()
    sizes = shape_of(op.outputs[0])[2:]
    for options in _OPTIONS:
        if all(
            np.allclose(
                np.clip(_coordinates(axis.size, new, options), 0, axis.size - 1),
                np.clip(axis.coordinates, 0, axis.size - 1),
                rtol=0,
                atol=1e-5,
            )
            for axis, new in zip(axes, sizes, strict=True)
        ):
            return options
    return None


def _nearest_options(op: ResizeNearest) -> dict[str, bool] | None:
    """Return the options that give the same pixels; `None` if none do."""
    axes = op.static_axes()
    sizes = shape_of(op.outputs[0])[2:]
    for options in _OPTIONS:
        if all(
            np.array_equal(
                _nearest_pixels(axis.size, new, options),
                nearest(axis, op.rounding, op.align_corners),
            )
            for axis, new in zip(axes, sizes, strict=True)
        ):
            return options
    return None


def _nearest_pixels(size: int, new: int, options: dict[str, bool]) -> Array:
    """Return the source pixel of each target pixel, as TensorFlow Lite computes it."""
    coordinates = _coordinates(size, new, options)
    if options["align_corners"]:
        pixels = np.floor(coordinates + 0.5)
    elif options["half_pixel_centers"]:
        pixels = np.floor(coordinates + np.float32(0.5))
    else:
        pixels = np.floor(coordinates)
    return np.clip(pixels, 0, size - 1).astype(np.int64)
