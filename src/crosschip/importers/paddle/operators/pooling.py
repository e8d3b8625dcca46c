"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.images import Images, padding
from crosschip.ir import Array, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)
from crosschip.ops.standard.arithmetic import Clip, Mul
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import (
    AveragePool2D,
    AveragePool3D,
    MaxPool2D,
    MaxPool3D,
)
from crosschip.ops.standard.reduction import ReduceMax

_LOWEST = float(np.finfo(np.float32).min)
"""The maximum that Paddle has of nothing."""
_LONGEST = 2**20
"""The longest axis of an image; only a damaged file has a longer one."""

_AVERAGE_POOLS = {2: AveragePool2D, 3: AveragePool3D}
_MAX_POOLS = {2: MaxPool2D, 3: MaxPool3D}
_MEANS = {2: AdaptiveAveragePool2D, 3: AdaptiveAveragePool3D}
_CELL_MAXIMA = {2: AdaptiveMaxPool2D, 3: AdaptiveMaxPool3D}


@imports("pool2d", "pool3d")
def pool(op: Context) -> None:
    kind = op.text("pooling_type")
    if kind not in ("avg", "max"):
        raise ModelError(f"pooling_type: {kind!r} is neither 'avg' nor 'max'")
    images = Images(op)
    is_global, is_adaptive = op.flag("global_pooling", False), op.flag("adaptive", False)
    rank = _rank(op)
    if is_adaptive and kind == "max":
        _add_adaptive_maxima(op, images, is_global)
    elif is_adaptive and is_global:
        op.define(op.input())
    elif is_adaptive:
        images.make(_MEANS[rank], images.input("X"), op.integers("ksize"))
    elif is_global and kind == "avg":
        images.make(_MEANS[rank], images.input("X"), (1,) * rank)
    elif is_global:
        images.make(ReduceMax, images.input("X"), range(2, 2 + rank), keepdim=True)
    else:
        _add_windowed(op, images, kind)


def _rank(op: Context) -> int:
    """Return the number of spatial axes of an operator."""
    return 3 if "3d" in op.kind else 2


def _add_adaptive_maxima(op: Context, images: Images, is_global: bool) -> None:
    """Add maxima of as many windows as a window has pixels, one stride apart.

    This is Paddle's result for adaptive maxima. The window is the whole image if the pooling is
    global. Nothing is padded; a window outside of the image is empty.
    """
    rank = _rank(op)
    image, strides = images.input("X"), op.integers("strides", (1,) * rank)
    sizes = [size for size in (image.type.shape or ())[2:] if isinstance(size, int)]
    if len(sizes) != rank:
        raise UnsupportedError(
            f"pooling_type 'max' with adaptive True: the sizes of {image.type} must be known"
        )
    windows = tuple(sizes) if is_global else op.integers("ksize")
    if not len(windows) == len(strides) == rank or min(*windows, *strides, *sizes) < 1:
        raise ModelError(
            f"ksize {list(windows)}, strides {list(strides)}: must be {rank} sizes each"
        )
    padding, missing = [0, 0] * rank, [0, 0] * rank
    for axis, (size, window, stride) in enumerate(zip(sizes, windows, strides, strict=True)):
        in_image = min(window, -(-size // stride))
        beyond = max((in_image - 1) * stride + window - size, 0)
        padding[2 * axis + 1] = beyond
        missing[2 * axis + 1] = window - (size + beyond - window) // stride - 1
    maxima = op.add(
        _MAX_POOLS[rank], image, pads=tuple(padding), kernel_shape=windows, strides=strides
    )
    lowest = np.asarray(_LOWEST).astype(image.type.element_type.dtype)
    images.make(Pad, maxima, (0, 0, 0, 0, *missing), PadMode.CONSTANT, lowest)


def _add_windowed(op: Context, images: Images, kind: str) -> None:
    rank = _rank(op)
    auto_pad, pads = padding(op, rank)
    arguments: dict[str, Any] = {
        "auto_pad": auto_pad,
        "pads": pads,
        "kernel_shape": op.integers("ksize"),
        "strides": op.integers("strides", (1,) * rank),
        "ceil_mode": op.flag("ceil_mode", False),
    }
    image = images.input("X")
    includes = not op.flag("exclusive", True)
    max_pool, average_pool = _MAX_POOLS[rank], _AVERAGE_POOLS[rank]
    if kind == "max" and _may_be_padding(**arguments):
        images.make(Clip, op.add(max_pool, image, **arguments), _LOWEST)
    elif kind == "max":
        images.make(max_pool, image, **arguments)
    elif includes and not _is_symmetric(auto_pad, pads):
        mean = op.add(average_pool, image, **arguments)
        images.make(Mul, mean, _fraction_inside(image, **arguments))
    else:
        images.make(average_pool, image, count_include_pad=includes, **arguments)


def _may_be_padding(
    auto_pad: AutoPad,
    pads: Sequence[int],
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    ceil_mode: bool,
) -> bool:
    """Return whether a window can consist of padding alone."""
    after = pads[1::2] if auto_pad is AutoPad.NONE else (0,) * len(strides)
    return ceil_mode and any(
        padding + stride > window
        for padding, stride, window in zip(after, strides, kernel_shape, strict=False)
    )


def _is_symmetric(auto_pad: AutoPad, pads: tuple[int, ...]) -> bool:
    """Return whether the padding before and after each axis is equal."""
    if auto_pad is AutoPad.NONE:
        return pads[0::2] == pads[1::2]
    return auto_pad is AutoPad.VALID


def _fraction_inside(
    image: Operand,
    auto_pad: AutoPad,
    pads: Sequence[int],
    kernel_shape: Sequence[int],
    strides: Sequence[int],
    ceil_mode: bool,
) -> Array:
    """Return, for each window, the fraction inside the image of the pixels that Paddle counts.

    Paddle takes the padding after an axis to be as wide as the padding before it.
    """
    sizes = [size for size in (image.type.shape or ())[2:] if isinstance(size, int)]
    if len(sizes) != len(strides):
        raise UnsupportedError(
            f"exclusive False with more padding on one side than on the other: the sizes of the "
            f"image {image.type} must be known"
        )
    axes = []
    sides = Windows(kernel_shape, strides, (1,) * len(strides), auto_pad, pads).sides(sizes)
    for axis, (size, window, stride) in enumerate(zip(sizes, kernel_shape, strides, strict=True)):
        before, after = sides[2 * axis : 2 * axis + 2]
        room = size + before + after - window + (stride - 1 if ceil_mode else 0)
        if room > _LONGEST:
            raise ModelError(f"X: {image.type} with paddings {list(pads)} is too large an image")
        starts = np.arange(room // stride + 1) * stride - before
        inside = np.minimum(starts + window, size) - np.maximum(starts, 0)
        axes.append(inside / (np.minimum(starts + window, size + before) - starts))
    return reduce(np.multiply.outer, axes).astype(image.type.element_type.dtype)


@imports("max_pool2d_with_index", "max_pool3d_with_index")
def max_pool_with_index(op: Context) -> None:
    """Import maxima and their offsets in the image; over a grid instead of windows if adaptive."""
    rank, returns_indices = _rank(op), op.is_read("Mask")
    indices: dict[str, Any] = {
        "return_indices": returns_indices,
        "return_indices_dtype": ElementType.INT32,
        "outputs": ("Out", "Mask") if returns_indices else ("Out",),
    }
    if op.flag("global_pooling", False):
        op.make_each(_CELL_MAXIMA[rank], op.input(), (1,) * rank, **indices)
    elif op.flag("adaptive", False):
        op.make_each(_CELL_MAXIMA[rank], op.input(), op.integers("ksize"), **indices)
    else:
        _, pads = padding(op, rank)
        op.make_each(
            _MAX_POOLS[rank],
            op.input(),
            pads=pads,
            kernel_shape=op.integers("ksize"),
            strides=op.integers("strides", (1,) * rank),
            **indices,
        )


@imports("maxout")
def maxout(op: Context) -> None:
    """Import the maximum of each group of consecutive channels."""
    x, count, axis = op.input(), op.integer("groups"), op.integer("axis", 1) % op.rank(op.input())
    channels = (x.type.shape or ())[axis]
    if not isinstance(channels, int) or count < 1 or channels % count:
        raise UnsupportedError(
            f"groups: the channels of {x.type} must be known, and {count} divide them"
        )
    groups = op.add(Reshape, x, _split_channels(op, x, axis, count))
    op.make(ReduceMax, groups, (axis + 1,), keepdim=False)


def _split_channels(op: Context, x: Operand, axis: int, count: int) -> tuple[int, ...]:
    sizes = [size if isinstance(size, int) else -1 for size in x.type.shape or ()]
    if sizes.count(-1) > 1:
        raise UnsupportedError(f"X: all sizes of {x.type} but one must be known")
    return (*sizes[:axis], sizes[axis] // count, count, *sizes[axis + 1 :])
