"""Poolings of images."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.importers.onnx.operators.windows import (
    Windows,
    explicit,
    image_of,
    pair,
    windows_of,
)
from crosschip.ir import Dim, Operand, UnsupportedError
from crosschip.ops.pooling import AdaptiveAveragePool2D, AveragePool2D, MaxPool2D
from crosschip.ops.reduction import ReduceMean


@imports("AveragePool")
def average_pool(node: Node) -> Operand:
    count_include_pad = node.flag("count_include_pad", False)
    return node.add(AveragePool2D, count_include_pad=count_include_pad, **_pooling(node))


@imports("MaxPool")
def max_pool(node: Node) -> Operand:
    """The second output, the places of the maxima, is not made."""
    node.ignore("storage_order")
    return node.add(MaxPool2D, **_pooling(node))


@imports("GlobalAveragePool")
def global_average_pool(node: Node) -> Operand:
    shape = node[0].type.shape
    if shape is None or len(shape) == 4:
        return node.add(AdaptiveAveragePool2D, node[0], (1, 1))
    return node.add(ReduceMean, node[0], tuple(range(2, len(shape))), keepdim=True)


def _pooling(node: Node) -> dict[str, object]:
    """The arguments that the standard poolings share."""
    image = image_of(node)
    kernel = pair("kernel_shape", node.integers("kernel_shape"))
    windows = explicit(windows_of(node, kernel), image)
    only("dilations", windows.dilations, (1, 1))
    pads = windows.pads
    if max(pads[:2]) >= kernel[0] or max(pads[2:]) >= kernel[1]:
        raise UnsupportedError(f"pads {list(pads)} are not smaller than kernel_shape")
    ceil_mode = node.flag("ceil_mode", False) and not windows.mode.startswith("SAME")
    if ceil_mode:
        pads = (*_ceil_pads(windows, image, 0), *_ceil_pads(windows, image, 1))
    return {
        "input": node[0],
        "auto_pad": windows.auto_pad,
        "pads": pads,
        "kernel_shape": kernel,
        "strides": windows.strides,
        "ceil_mode": ceil_mode,
    }


def _ceil_pads(windows: Windows, image: Sequence[Dim], axis: int) -> tuple[int, int]:
    """Padding before and after, with which rounding up gives as many windows as ONNX has.

    ONNX leaves out a window that would start in the padding after the image, standard operators do
    not; less of that padding makes them agree.
    Source: https://github.com/onnx/onnx/pull/5741.
    """
    before, after = windows.pads[2 * axis : 2 * axis + 2]
    size, stride, kernel = image[axis], windows.strides[axis], windows.spans[axis]
    if after + stride <= kernel:
        return before, after
    if not isinstance(size, int):
        raise UnsupportedError("ceil_mode with these pads needs an input of fixed height and width")
    room = size + before + after - kernel
    if -(-room // stride) * stride < size + before:
        return before, after
    if after < room % stride:
        raise UnsupportedError("ceil_mode would leave out the last pixels")
    return before, after - room % stride
