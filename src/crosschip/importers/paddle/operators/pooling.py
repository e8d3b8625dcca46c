"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.images import Images, padding
from crosschip.importers.paddle.table import imports
from crosschip.ir import Array, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.arithmetic import Clip, Mul
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import (
    AdaptiveAveragePool2D,
    AdaptiveMaxPool2D,
    AveragePool2D,
    MaxPool2D,
)
from crosschip.ops.standard.reduction import ReduceMax

_LOWEST = float(np.finfo(np.float32).min)
"""The maximum that Paddle has of nothing."""
_LONGEST = 2**20
"""The longest axis of an image; only a damaged file has a longer one."""


@imports("pool2d")
def pool2d(op: Context) -> None:
    kind = op.text("pooling_type")
    if kind not in ("avg", "max"):
        raise ModelError(f"pooling_type: {kind!r} is neither 'avg' nor 'max'")
    images = Images(op)
    is_global, is_adaptive = op.flag("global_pooling", False), op.flag("adaptive", False)
    if is_adaptive and kind == "max":
        _as_many_as_wide(op, images, is_global)
    elif is_adaptive and is_global:
        op.define(op.input())
    elif is_adaptive:
        images.make(AdaptiveAveragePool2D, images.input("X"), op.integers("ksize"))
    elif is_global:
        _over_everything(images, kind)
    else:
        _over_windows(op, images, kind)


def _over_everything(images: Images, kind: str) -> None:
    if kind == "avg":
        images.make(AdaptiveAveragePool2D, images.input("X"), (1, 1))
    else:
        images.make(ReduceMax, images.input("X"), (2, 3), keepdim=True)


def _as_many_as_wide(op: Context, images: Images, is_global: bool) -> None:
    """Maxima of as many windows, one stride after the other, as a window has pixels.

    It is what Paddle makes of adaptive maxima. A window is as large as the image if the pooling is
    global. Nothing is padded; a window beyond the image is empty.
    """
    image, strides = images.input("X"), op.integers("strides", (1, 1))
    sizes = [size for size in (image.type.shape or ())[2:] if isinstance(size, int)]
    if len(sizes) != 2:
        raise UnsupportedError(
            f"pooling_type 'max' with adaptive True: the sizes of {image.type} must be known"
        )
    windows = tuple(sizes) if is_global else op.integers("ksize")
    if not len(windows) == len(strides) == 2 or min(*windows, *strides, *sizes) < 1:
        raise ModelError(f"ksize {list(windows)}, strides {list(strides)}: must be two sizes each")
    padding, missing = [0, 0, 0, 0], [0, 0, 0, 0]
    for axis, (size, window, stride) in enumerate(zip(sizes, windows, strides, strict=True)):
        in_image = min(window, -(-size // stride))
        beyond = max((in_image - 1) * stride + window - size, 0)
        padding[2 * axis + 1] = beyond
        missing[2 * axis + 1] = window - (size + beyond - window) // stride - 1
    maxima = op.add(MaxPool2D, image, pads=tuple(padding), kernel_shape=windows, strides=strides)
    lowest = np.asarray(_LOWEST).astype(image.type.element_type.dtype)
    images.make(Pad, maxima, (0, 0, 0, 0, *missing), PadMode.CONSTANT, lowest)


def _over_windows(op: Context, images: Images, kind: str) -> None:
    auto_pad, pads = padding(op)
    arguments: dict[str, Any] = {
        "auto_pad": auto_pad,
        "pads": pads,
        "kernel_shape": op.integers("ksize"),
        "strides": op.integers("strides", (1, 1)),
        "ceil_mode": op.flag("ceil_mode", False),
    }
    image = images.input("X")
    includes = not op.flag("exclusive", True)
    if kind == "max" and _may_miss(**arguments):
        images.make(Clip, op.add(MaxPool2D, image, **arguments), _LOWEST)
    elif kind == "max":
        images.make(MaxPool2D, image, **arguments)
    elif includes and not _is_even(auto_pad, pads):
        mean = op.add(AveragePool2D, image, **arguments)
        images.make(Mul, mean, _share_inside(image, **arguments))
    else:
        images.make(AveragePool2D, image, count_include_pad=includes, **arguments)


def _may_miss(
    auto_pad: AutoPad,
    pads: Sequence[int],
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    ceil_mode: bool,
) -> bool:
    """Tell whether a window can lie in the padding altogether."""
    after = pads[1::2] if auto_pad is AutoPad.NONE else (0, 0)
    return ceil_mode and any(
        padding + stride > window
        for padding, stride, window in zip(after, strides, kernel_shape, strict=False)
    )


def _is_even(auto_pad: AutoPad, pads: tuple[int, ...]) -> bool:
    """Tell whether padding at the top is as much as at the bottom, and likewise at the sides."""
    if auto_pad is AutoPad.NONE:
        return pads[0::2] == pads[1::2]
    return auto_pad is AutoPad.VALID


def _share_inside(
    image: Operand,
    auto_pad: AutoPad,
    pads: Sequence[int],
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    ceil_mode: bool,
) -> Array:
    """The share inside the image of what Paddle counts of each window, [H_out, W_out].

    It takes the padding at the bottom and on the right to be as wide as that opposite.
    """
    sizes = [size for size in (image.type.shape or ())[2:] if isinstance(size, int)]
    if len(sizes) != 2:
        raise UnsupportedError(
            f"exclusive False with more padding on one side than on the other: the sizes of the "
            f"image {image.type} must be known"
        )
    axes = []
    sides = Windows(kernel_shape, strides, (1, 1), auto_pad, pads).sides(sizes)
    for axis, (size, window, stride) in enumerate(zip(sizes, kernel_shape, strides, strict=True)):
        before, after = sides[2 * axis : 2 * axis + 2]
        room = size + before + after - window + (stride - 1 if ceil_mode else 0)
        if room > _LONGEST:
            raise ModelError(f"X: {image.type} with paddings {list(pads)} is too large an image")
        starts = np.arange(room // stride + 1) * stride - before
        inside = np.minimum(starts + window, size) - np.maximum(starts, 0)
        axes.append(inside / (np.minimum(starts + window, size + before) - starts))
    return np.outer(*axes).astype(image.type.element_type.dtype)


@imports("max_pool2d_with_index")
def max_pool2d_with_index(op: Context) -> None:
    """The maxima, and where they are in the image; not in windows if it is adaptive."""
    outputs, dtype = ("Out", "Mask"), ElementType.INT32
    indices: dict[str, Any] = {"return_indices": True, "return_indices_dtype": dtype}
    if op.flag("global_pooling", False):
        op.make_each(AdaptiveMaxPool2D, op.input(), (1, 1), outputs=outputs, **indices)
    elif op.flag("adaptive", False):
        size = op.integers("ksize")
        op.make_each(AdaptiveMaxPool2D, op.input(), size, outputs=outputs, **indices)
    else:
        _, pads = padding(op)
        window = op.integers("ksize")
        strides = op.integers("strides", (1, 1))
        op.make_each(
            MaxPool2D,
            op.input(),
            pads=pads,
            kernel_shape=window,
            strides=strides,
            outputs=outputs,
            **indices,
        )
