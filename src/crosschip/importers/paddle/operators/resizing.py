"""Resampling of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.images import Images
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Flatten, Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.slicing import Slice

_MAX_SIZE = 2**31


@imports("nearest_interp_v2")
def nearest_interp_v2(op: Context) -> None:
    _resample(op, ResizeNearest)


@imports("nearest_interp")
def nearest_interp(op: Context) -> None:
    _resample(op, ResizeNearest, by_size=True)


@imports("bilinear_interp_v2")
def bilinear_interp_v2(op: Context) -> None:
    _resample(op, ResizeLinear)


@imports("bilinear_interp")
def bilinear_interp(op: Context) -> None:
    _resample(op, ResizeLinear, by_size=True)


@imports("bicubic_interp_v2")
def bicubic_interp_v2(op: Context) -> None:
    _resample(op, ResizeCubic)


def _resample(op: Context, operator: type[Operator], by_size: bool = False) -> None:
    """Resample to a size in a tensor, else by scales, else to a size in attributes.

    Args:
        op: the operator.
        operator: the standard operator.
        by_size: whether scales only determine the output size, as in the first version of the
            operators, so that the step is `size / new_size` instead of `1 / scale`.
    """
    images = Images(op, "data_layout")
    image = images.input("X")
    arguments: dict[str, Any] = {"align_corners": op.flag("align_corners", True)}
    if op.inputs("SizeTensor") or op.inputs("OutSize"):
        arguments["shape"] = op.integers_or_tensor("size", "SizeTensor", "OutSize")
    elif scales := _scales(op):
        arguments |= _scale_arguments(op, image, scales, by_size and not arguments["align_corners"])
    else:
        arguments["shape"] = (op.integer("out_h"), op.integer("out_w"))
    if operator is ResizeLinear:
        arguments["align_mode"] = _align_mode(op, **arguments)
    images.make(operator, image, **arguments)


def _scales(op: Context) -> tuple[float, ...] | Operand:
    """Return the scales of height and width; empty unless they are positive."""
    scales = op.reals_or_tensor("scale", "Scale")
    if isinstance(scales, Operand):
        is_one = scales.type.static_shape == (1,)
        return op.add(Concat, parts=[scales, scales], axis=0) if is_one else scales
    if not scales or min(scales) <= 0:
        return ()
    return scales * 2 if len(scales) == 1 else scales


def _scale_arguments(
    op: Context, image: Operand, scales: tuple[float, ...] | Operand, by_size: bool
) -> dict[str, Any]:
    """Return the argument `scales`, or `shape` if the scales only determine the size."""
    if not by_size:
        return {"scales": scales}
    if not isinstance(scales, Operand):
        sizes = (image.type.shape or ())[2:]
        if len(sizes) == len(scales) and all(isinstance(size, int) for size in sizes):
            new = np.array(sizes, np.float32) * np.array(scales, np.float32)
            if not (new < _MAX_SIZE).all():
                raise ModelError(f"scale: {list(scales)} are no factors for {image.type}")
            return {"shape": tuple(int(size) for size in new)}
        if all(scale.is_integer() for scale in scales):
            return {"scales": scales}
    old = op.add(Slice, op.add(ShapeOf, image), (0,), (2,), (4,))
    factors = scales if isinstance(scales, Operand) else np.array(scales, np.float32)
    scaled = op.add(Mul, op.add(Cast, old, ElementType.FLOAT32), factors)
    return {"shape": op.add(Cast, scaled, ElementType.INT32)}


def _align_mode(op: Context, align_corners: bool, **target: Any) -> AlignMode:
    """Return the mapping of coordinates; Paddle maps a single output pixel to coordinate 0."""
    if op.integer("align_mode", 1):
        return AlignMode.ASYMMETRIC
    shape, scales = target.get("shape"), target.get("scales")
    has_no_ones = isinstance(shape, tuple) and 1 not in shape
    is_upscaling = isinstance(scales, tuple) and min(scales) >= 1
    if align_corners or has_no_ones or is_upscaling:
        return AlignMode.HALF_PIXEL
    return AlignMode.PYTORCH_HALF_PIXEL


@imports("linear_interp_v2")
def linear_interp_v2(op: Context) -> None:
    """Resample rows as images of height 1."""
    images = Images(op, "data_layout")
    row = op.add(Unsqueeze, images.input("X"), (2,))
    settings = _linear(op)
    scales = _scales(op)
    target = op.integers_or_tensor("size", "SizeTensor", "OutSize") if _has_size(op) else None
    if isinstance(target, Operand):
        one = op.constant(np.ones(1, target.type.element_type.dtype), "one")
        resized = op.add(
            ResizeLinear, row, shape=op.add(Concat, parts=[one, target], axis=0), **settings
        )
    elif isinstance(scales, Operand):
        raise UnsupportedError("Scale: must be known; export with a size")
    elif target is None and scales:
        resized = op.add(ResizeLinear, row, scales=(1.0, scales[0]), **settings)
    else:
        width = op.integer("out_w") if target is None else target[0]
        resized = op.add(ResizeLinear, row, shape=(1, width), **settings)
    images.make(Squeeze, resized, (2,))


@imports("trilinear_interp_v2")
def trilinear_interp_v2(op: Context) -> None:
    """Resample volumes along height and width, and then along depth."""
    images = Images(op, "data_layout")
    x, settings = images.input("X"), _linear(op)
    shape = x.type.shape or ()
    channels, depth = (size if isinstance(size, int) else -1 for size in shape[1:3])
    scales = op.reals("scale", (), "Scale")
    scales = scales * 3 if len(scales) == 1 else scales
    if _has_size(op):
        size = op.integers("size", None, "SizeTensor", "OutSize")
    elif scales and min(scales) > 0:
        size = ()
    else:
        size = op.integer("out_d"), op.integer("out_h"), op.integer("out_w")
    if min(channels, depth) < 0:
        raise UnsupportedError(f"X: the channels and the depth of {x.type} must be known")
    targets: list[dict[str, Any]] = [
        {"shape": size[1:]} if size else {"scales": scales[1:]},
        {"shape": (size[0], 0)} if size else {"scales": (scales[0], 1.0)},
    ]
    resized = op.add(ResizeLinear, op.add(Flatten, x, 1, 2), **targets[0], **settings)
    height, width = (s if isinstance(s, int) else -1 for s in (resized.type.shape or ())[2:])
    if min(height, width) < 0:
        raise UnsupportedError(f"X: the sizes of {x.type} must be known")
    columns = op.add(Reshape, resized, (-1, channels, depth, height * width))
    if size:
        targets[1] = {"shape": (size[0], height * width)}
    resized = op.add(ResizeLinear, columns, **targets[1], **settings)
    new = (resized.type.shape or (None,) * 3)[2]
    images.make(
        Reshape, resized, (-1, channels, new if isinstance(new, int) else -1, height, width)
    )


def _has_size(op: Context) -> bool:
    return bool(op.inputs("SizeTensor") or op.inputs("OutSize"))


def _linear(op: Context) -> dict[str, Any]:
    align_corners = op.flag("align_corners", True)
    is_asymmetric = op.integer("align_mode", 1) and not align_corners
    mode = AlignMode.ASYMMETRIC if is_asymmetric else AlignMode.HALF_PIXEL
    return {"align_corners": align_corners, "align_mode": mode}
