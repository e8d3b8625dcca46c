"""Pooling over windows of images with one to three axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosschip.importers.facts import static_shape_of
from crosschip.importers.onnx.node import Node, bounded, imports
from crosschip.importers.onnx.windows import (
    arguments,
    channels_last,
    image_of,
    positive,
    windows_of,
)
from crosschip.ir import ElementType, Operand
from crosschip.ops import Operator
from crosschip.ops.definition.windows import Windows, static
from crosschip.ops.standard.arithmetic import Add, Div, Mod, Mul, Pow, Sub
from crosschip.ops.standard.indexing import ScatterElements
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.pooling import (
    AveragePool1D,
    AveragePool2D,
    AveragePool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
)
from crosschip.ops.standard.unary import Abs

_AVERAGE_POOLS = {1: AveragePool1D, 2: AveragePool2D, 3: AveragePool3D}
_MAX_POOLS = {1: MaxPool1D, 2: MaxPool2D, 3: MaxPool3D}


@imports("AveragePool")
def average_pool(node: Node) -> Operand:
    (means,) = _add_pool(
        node,
        _AVERAGE_POOLS,
        node[0],
        _windows(node),
        count_include_pad=node.flag("count_include_pad"),
        ceil_mode=node.flag("ceil_mode"),
        inside=True,
    )
    return means


@imports("MaxPool")
def max_pool(node: Node) -> Sequence[Operand]:
    """Import maxima and their indices, which ONNX counts through the whole input."""
    by_columns = node.flag("storage_order")
    options: dict[str, object] = {"ceil_mode": node.flag("ceil_mode"), "inside": True}
    windows = _windows(node)
    if len(node.outputs) < 2 or not node.outputs[1]:
        return _add_pool(node, _MAX_POOLS, node[0], windows, **options)
    options |= {"return_indices": True, "return_indices_dtype": ElementType.INT64}
    maxima, offsets = _add_pool(node, _MAX_POOLS, node[0], windows, **options)
    return [
        maxima,
        _indices_in_input(node, offsets, static_shape_of(node[0]), by_columns=by_columns),
    ]


def _indices_in_input(
    node: Node, offsets: Operand, shape: tuple[int, ...], *, by_columns: bool
) -> Operand:
    """Convert offsets in images to offsets in the whole input, optionally in column order."""
    batch, channels, *image = shape
    stride, terms = math.prod(image), list[Operand]()
    for size in image[:0:-1] if by_columns else ():
        stride //= size
        index = node.add(Mod, offsets, np.array(size))
        terms.append(node.add(Mul, index, np.array(stride)))
        offsets = node.add(Div, offsets, np.array(size))
    for part in terms:
        offsets = node.add(Add, offsets, part)
    firsts = np.arange(batch * channels) * math.prod(image)
    return node.add(Add, offsets, firsts.reshape(batch, channels, *(1,) * len(image)))


@imports("com.microsoft.NhwcMaxPool")
def max_pool_of_channels_last(node: Node) -> Operand:
    kernel = node.integers("kernel_shape")
    windows = windows_of(node, positive("kernel_shape", kernel, len(kernel)))
    ceil_mode = node.flag("ceil_mode", False)

    def pooled(image: Operand) -> Operand:
        image_of(image, len(kernel))
        (maxima,) = _add_pool(node, _MAX_POOLS, image, windows, ceil_mode=ceil_mode, inside=True)
        return maxima

    return channels_last(node, node[0], pooled)


@imports("LpPool")
def lp_pool(node: Node) -> Operand:
    """Import the `p`-norm of windows: the root of the mean of powers times the window's size."""
    power = node.integer("p")
    windows = _windows(node)
    if node.flag("ceil_mode"):
        windows = replace(windows, ceil=True, inside=True).rounded_down(
            static_shape_of(node[0])[2:]
        )
    powers = node.add(Pow, node.add(Abs, node[0]), float(power))
    (means,) = _add_pool(node, _AVERAGE_POOLS, powers, windows, count_include_pad=True)
    sums = node.add(Mul, means, float(math.prod(static(windows.kernel))))
    return node.add(Pow, sums, 1 / power)


@imports("MaxUnpool")
def max_unpool(node: Node) -> Operand:
    """Write each maximum to its index in zeros.

    Indices count through a result of the size that follows from the windows; a larger requested
    result is padded with zeros at the end of each axis.
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
    maxima, indices = (node.add(Reshape, node[index], (-1,)) for index in range(2))
    filled = node.add(Reshape, node.add(ScatterElements, zeros, indices, maxima, 0), shape)
    output_shape = node.optional(2)
    if output_shape is None:
        return filled
    missing = node.add(Unsqueeze, node.add(Sub, output_shape, np.array(shape)), (1,))
    none = node.constant(np.zeros((len(shape), 1), np.int64))
    pads = node.add(Reshape, node.add(Concat, parts=[none, missing], axis=1), (-1,))
    return node.add(Pad, filled, pads)


def _add_pool(
    node: Node,
    operators: Mapping[int, type[Operator]],
    image: Operand,
    windows: Windows,
    **options: object,
) -> Sequence[Operand]:
    """Add the pooling operator for the rank of the windows."""
    return node.add_all(
        operators[windows.rank],
        image,
        kernel_shape=windows.kernel,
        **arguments(windows),
        **options,
    )


def _windows(node: Node) -> Windows:
    kernel = node.integers("kernel_shape")
    image_of(node[0], len(kernel))
    return windows_of(node, positive("kernel_shape", kernel, len(kernel)))
