"""Poolings of images of one, two and three axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from crosschip.importers.onnx.facts import rank_of, static_shape_of
from crosschip.importers.onnx.node import Node, bounded, imports
from crosschip.importers.onnx.windows import (
    arguments,
    channels_last,
    explicit,
    flat,
    image_of,
    positive,
    upright,
    windows_of,
)
from crosschip.ir import ElementType, Operand, UnsupportedError
from crosschip.ops.definition.windows import Windows, static
from crosschip.ops.standard.arithmetic import Add, Div, Mod, Mul, Pow, Sub
from crosschip.ops.standard.indexing import ScatterElements
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.pooling import AdaptiveAveragePool2D, AveragePool2D, MaxPool2D
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean, ReduceSum
from crosschip.ops.standard.unary import Abs

Pool = Callable[[Operand, Windows], Operand]
"""Pools images of two axes."""


@imports("AveragePool")
def average_pool(node: Node) -> Operand:
    """On three axes, the mean along depth of the means of planes."""
    options = {
        "count_include_pad": node.flag("count_include_pad"),
        "ceil_mode": node.flag("ceil_mode"),
        "inside": True,
    }

    def pool(operand: Operand, windows: Windows) -> Operand:
        where = arguments(windows)
        return node.add(AveragePool2D, operand, kernel_shape=windows.kernel, **where, **options)

    return _pooled(node, pool, node[0], _windows(node))


@imports("MaxPool")
def max_pool(node: Node) -> Sequence[Operand]:
    """The second output is where the maxima are, counted through all of the input."""
    by_columns = node.flag("storage_order")
    options = {"ceil_mode": node.flag("ceil_mode"), "inside": True}
    windows = _windows(node)

    def pool(operand: Operand, windows: Windows) -> Operand:
        where = arguments(windows)
        return node.add(MaxPool2D, operand, kernel_shape=windows.kernel, **where, **options)

    if len(node.outputs) < 2 or not node.outputs[1]:
        return [_pooled(node, pool, node[0], windows)]
    if windows.rank == 3:
        raise UnsupportedError("the indices of maxima in images of 3 axes cannot be expressed")
    operand = node[0]
    if windows.rank == 1:
        operand, windows = node.add(Unsqueeze, operand, (2,)), flat(windows)
    maxima, offsets = node.add_all(
        MaxPool2D,
        operand,
        kernel_shape=windows.kernel,
        return_indices=True,
        return_indices_dtype=ElementType.INT64,
        **arguments(windows),
        **options,
    )
    places = _places(node, offsets, static_shape_of(operand), by_columns=by_columns)
    if len(static_shape_of(node[0])) == 4:
        return [maxima, places]
    return [node.add(Squeeze, operand_2d, (2,)) for operand_2d in (maxima, places)]


def _places(node: Node, offsets: Operand, shape: tuple[int, ...], *, by_columns: bool) -> Operand:
    """Offsets into images as offsets into all of the input, whose images may be by columns."""
    batch, channels, height, width = shape
    if by_columns:
        rows = node.add(Div, offsets, np.array(width))
        columns = node.add(Mod, offsets, np.array(width))
        offsets = node.add(Add, node.add(Mul, columns, np.array(height)), rows)
    firsts = np.arange(batch * channels) * height * width
    return node.add(Add, offsets, firsts.reshape(batch, channels, 1, 1))


@imports("com.microsoft.NhwcMaxPool")
def max_pool_of_channels_last(node: Node) -> Operand:
    kernel = node.integers("kernel_shape")
    windows = windows_of(node, positive("kernel_shape", kernel, len(kernel)))
    options = {"ceil_mode": node.flag("ceil_mode", False), "inside": True}

    def pool(operand: Operand, windows: Windows) -> Operand:
        where = arguments(windows)
        return node.add(MaxPool2D, operand, kernel_shape=windows.kernel, **where, **options)

    def pooled(image: Operand) -> Operand:
        image_of(image, len(kernel))
        return _pooled(node, pool, image, windows)

    return channels_last(node, node[0], pooled)


@imports("LpPool")
def lp_pool(node: Node) -> Operand:
    """The `p`-norm of each window: the mean of powers, times how many there are, and the root."""
    power = node.integer("p")
    ceil_mode = node.flag("ceil_mode")
    powers = node.add(Pow, node.add(Abs, node[0]), float(power))

    operand, windows = powers, _windows(node)
    if ceil_mode:
        windows = replace(windows, ceil=True, inside=True).rounded_down(
            static_shape_of(node[0])[2:]
        )

    def pool(operand: Operand, windows: Windows) -> Operand:
        means = node.add(
            AveragePool2D,
            operand,
            kernel_shape=windows.kernel,
            count_include_pad=True,
            **arguments(windows),
        )
        return node.add(Mul, means, float(math.prod(static(windows.kernel))))

    return node.add(Pow, _pooled(node, pool, operand, windows), 1 / power)


@imports("GlobalAveragePool")
def global_average_pool(node: Node) -> Operand:
    shape = node[0].type.shape
    if shape is None or len(shape) == 4:
        return node.add(AdaptiveAveragePool2D, node[0], (1, 1))
    return node.add(ReduceMean, node[0], tuple(range(2, len(shape))), keepdim=True)


@imports("GlobalMaxPool")
def global_max_pool(node: Node) -> Operand:
    return node.add(ReduceMax, node[0], _image_axes(node), keepdim=True)


@imports("GlobalLpPool")
def global_lp_pool(node: Node) -> Operand:
    power = node.integer("p")
    powers = node.add(Pow, node.add(Abs, node[0]), float(power))
    return node.add(Pow, node.add(ReduceSum, powers, _image_axes(node), keepdim=True), 1 / power)


@imports("MaxUnpool")
def max_unpool(node: Node) -> Operand:
    """Writes each maximum to the place that the pooling found it at; the rest is 0.

    Places count through a result of the size that follows from the windows; if a larger one is
    asked for, it is filled up with zeros at the end of each axis.
    """
    windows = _windows(node)
    batch, channels, *image = static_shape_of(node[0])
    sizes = [
        (size - 1) * stride + span - before - after
        for size, stride, span, before, after in zip(
            image, windows.strides, windows.spans, windows.before, windows.after, strict=True
        )
    ]
    shape = (batch, channels, *sizes)
    zeros = np.zeros(bounded(math.prod(shape)), node[0].type.element_type.dtype)
    maxima, places = (node.add(Reshape, node[index], (-1,)) for index in range(2))
    filled = node.add(Reshape, node.add(ScatterElements, zeros, places, maxima, 0), shape)
    output_shape = node.optional(2)
    if output_shape is None:
        return filled
    missing = node.add(Unsqueeze, node.add(Sub, output_shape, np.array(shape)), (1,))
    none = node.constant(np.zeros((len(shape), 1), np.int64))
    pads = node.add(Reshape, node.add(Concat, parts=[none, missing], axis=1), (-1,))
    return node.add(Pad, filled, pads)


def _pooled(node: Node, pool: Pool, operand: Operand, windows: Windows) -> Operand:
    """The result of a pooling of planes for images of any number of axes."""
    if windows.rank == 1:
        line = pool(node.add(Unsqueeze, operand, (2,)), flat(windows))
        return node.add(Squeeze, line, (2,))
    if windows.rank == 2:
        return pool(operand, windows)
    batch, channels, depth, height, width = static_shape_of(operand)
    windows = explicit(windows, (depth, height, width))
    merged = node.add(Reshape, operand, (batch, channels * depth, height, width))
    planes = pool(merged, windows.on(1, 2))
    rows, columns = static_shape_of(planes)[2:]
    lines = node.add(Reshape, planes, (batch, channels, depth, rows * columns))
    lines = pool(lines, upright(windows.on(0)))
    return node.add(Reshape, lines, (batch, channels, static_shape_of(lines)[2], rows, columns))


def _windows(node: Node) -> Windows:
    kernel = node.integers("kernel_shape")
    image_of(node[0], len(kernel))
    return windows_of(node, positive("kernel_shape", kernel, len(kernel)))


def _image_axes(node: Node) -> tuple[int, ...]:
    return tuple(range(2, rank_of(node[0])))
