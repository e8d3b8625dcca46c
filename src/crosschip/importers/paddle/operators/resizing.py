"""Resampling of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.images import Images
from crosschip.importers.paddle.table import imports
from crosschip.ir import ElementType, ModelError, Operand
from crosschip.ops import Operator
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
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
        by_size: whether a step in the target is `size / new` even where a scale is given, as in
            the first version of the operators; else it is `1 / scale` there.
    """
    images = Images(op, "data_layout")
    image = images.input("X")
    arguments: dict[str, Any] = {"align_corners": op.flag("align_corners", True)}
    if op.inputs("SizeTensor") or op.inputs("OutSize"):
        arguments["shape"] = op.integers_or_tensor("size", "SizeTensor", "OutSize")
    elif scales := _scales(op):
        arguments |= _by_scales(op, image, scales, by_size and not arguments["align_corners"])
    else:
        arguments["shape"] = (op.integer("out_h"), op.integer("out_w"))
    if operator is ResizeLinear:
        arguments["align_mode"] = _align_mode(op, **arguments)
    images.make(operator, image, **arguments)


def _scales(op: Context) -> tuple[float, ...] | Operand:
    """The scales of height and width; none unless they are positive."""
    scales = op.reals_or_tensor("scale", "Scale")
    if isinstance(scales, Operand):
        is_one = scales.type.static_shape == (1,)
        return op.add(Concat, parts=[scales, scales], axis=0) if is_one else scales
    if not scales or min(scales) <= 0:
        return ()
    return scales * 2 if len(scales) == 1 else scales


def _by_scales(
    op: Context, image: Operand, scales: tuple[float, ...] | Operand, by_size: bool
) -> dict[str, Any]:
    """The argument that asks for scales, or for the size that they lead to."""
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
    """The places of pixels; one alone in a row or column is the first of the source."""
    if op.integer("align_mode", 1):
        return AlignMode.ASYMMETRIC
    shape, scales = target.get("shape"), target.get("scales")
    is_longer = isinstance(shape, tuple) and 1 not in shape
    is_no_shorter = isinstance(scales, tuple) and min(scales) >= 1
    if align_corners or is_longer or is_no_shorter:
        return AlignMode.HALF_PIXEL
    return AlignMode.PYTORCH_HALF_PIXEL
