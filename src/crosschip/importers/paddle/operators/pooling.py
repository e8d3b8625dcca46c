"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.images import Images, padding, volume_padding
from crosschip.ir import Array, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.arithmetic import Clip, Mul
from crosschip.ops.standard.layout import Flatten, Reshape
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import (
    AdaptiveAveragePool2D,
    AdaptiveMaxPool2D,
    AveragePool2D,
    MaxPool2D,
)
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean

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


@imports("pool3d")
def pool3d(op: Context) -> None:
    """Pooling of planes, and then of what it makes along the depth."""
    kind = op.text("pooling_type")
    if kind not in ("avg", "max"):
        raise ModelError(f"pooling_type: {kind!r} is neither 'avg' nor 'max'")
    images = Images(op)
    x = images.input("X")
    if op.flag("global_pooling", False):
        images.make(ReduceMean if kind == "avg" else ReduceMax, x, (2, 3, 4), keepdim=True)
        return
    if op.flag("adaptive", False):
        if kind == "max":
            raise UnsupportedError(
                "adaptive True: the maxima of cells of volumes cannot be expressed"
            )
        _make_cells_of_volume(op, images, x, AdaptiveAveragePool2D)
        return
    algorithm, pads = volume_padding(op)
    ceil_mode = op.flag("ceil_mode", False)
    operator = AveragePool2D if kind == "avg" else MaxPool2D
    window, strides = op.integers("ksize"), op.integers("strides", (1, 1, 1))
    common: dict[str, Any] = {"auto_pad": algorithm, "ceil_mode": ceil_mode}
    if kind == "avg":
        common["count_include_pad"] = not op.flag("exclusive", True)
    if kind == "avg" and not op.flag("exclusive", True) and pads[::2] != pads[1::2]:
        raise UnsupportedError("exclusive False: more padding on one side cannot be expressed")
    plane_settings = {**common, "kernel_shape": window[1:], "strides": strides[1:]}
    depth_settings = {**common, "kernel_shape": (window[0], 1), "strides": (strides[0], 1)}
    if algorithm is AutoPad.NONE:
        plane_settings["pads"] = pads[2:]
        depth_settings["pads"] = (*pads[:2], 0, 0)
    _make_pooled_volume(op, images, x, operator, plane_settings, depth_settings)


def _make_cells_of_volume(
    op: Context, images: Images, x: Operand, operator: type[Operator]
) -> None:
    """Pool the cells of a grid laid over volumes."""
    size = op.integers("ksize")
    if len(size) != 3:
        raise ModelError(f"ksize: {list(size)} are not three sizes")
    plane = {"output_shape": size[1:]}
    depth = {"output_shape": (size[0], size[1] * size[2])}
    _make_pooled_volume(op, images, x, operator, plane, depth)


def _make_pooled_volume(
    op: Context,
    images: Images,
    x: Operand,
    operator: type[Operator],
    plane: dict[str, Any],
    depth: dict[str, Any],
) -> None:
    """Pool the planes of volumes [N, C, D, H, W], and then their columns."""
    sizes = (x.type.shape or ())[1:3]
    channels, planes = (size if isinstance(size, int) else -1 for size in sizes)
    if min(channels, planes) < 0:
        raise UnsupportedError(f"X: the channels and the depth of {x.type} must be known")
    pooled_planes = op.add(operator, op.add(Flatten, x, 1, 2), **plane)
    height, width = (
        size if isinstance(size, int) else -1 for size in (pooled_planes.type.shape or ())[2:]
    )
    if min(height, width) < 0:
        raise UnsupportedError(f"X: the sizes of {x.type} must be known")
    columns = op.add(Reshape, pooled_planes, (-1, channels, planes, height * width))
    pooled = op.add(operator, columns, **depth)
    images.make(Reshape, pooled, (-1, channels, *_depth_of(pooled), height, width))


def _depth_of(columns: Operand) -> tuple[int, ...]:
    depth = (columns.type.shape or (None,) * 3)[2]
    return (depth,) if isinstance(depth, int) else (-1,)


@imports("max_pool3d_with_index")
def max_pool3d_with_index(op: Context) -> None:
    """The maxima of volumes; where they are cannot be expressed."""
    if op.is_read("Mask"):
        raise UnsupportedError("Mask: the places of maxima in volumes cannot be expressed")
    x = op.input()
    if op.flag("global_pooling", False):
        op.make(ReduceMax, x, (2, 3, 4), keepdim=True)
        return
    if op.flag("adaptive", False):
        _make_cells_of_volume(op, Images(op), x, AdaptiveMaxPool2D)
        return
    _, pads = volume_padding(op)
    window, strides = op.integers("ksize"), op.integers("strides", (1, 1, 1))
    plane: dict[str, Any] = {"kernel_shape": window[1:], "strides": strides[1:], "pads": pads[2:]}
    depth: dict[str, Any] = {"kernel_shape": (window[0], 1), "strides": (strides[0], 1)}
    depth["pads"] = (*pads[:2], 0, 0)
    _make_pooled_volume(op, Images(op), x, MaxPool2D, plane, depth)


@imports("maxout")
def maxout(op: Context) -> None:
    """The maximum of each few channels that follow one another."""
    x, count, axis = op.input(), op.integer("groups"), op.integer("axis", 1) % op.rank(op.input())
    channels = (x.type.shape or ())[axis]
    if not isinstance(channels, int) or count < 1 or channels % count:
        raise UnsupportedError(
            f"groups: the channels of {x.type} must be known, and {count} divide them"
        )
    groups = op.add(Reshape, x, _with_groups(op, x, axis, count))
    op.make(ReduceMax, groups, (axis + 1,), keepdim=False)


def _with_groups(op: Context, x: Operand, axis: int, count: int) -> tuple[int, ...]:
    sizes = [size if isinstance(size, int) else -1 for size in x.type.shape or ()]
    if sizes.count(-1) > 1:
        raise UnsupportedError(f"X: all sizes of {x.type} but one must be known")
    return (*sizes[:axis], sizes[axis] // count, count, *sizes[axis + 1 :])
