"""Convolutions of images of one, two and three axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosschip.importers.onnx.facts import static_shape_of
from crosschip.importers.onnx.node import Node, imports
from crosschip.importers.onnx.operators.activation import activated
from crosschip.importers.onnx.windows import (
    Numbers,
    arguments,
    explicit,
    flat,
    image_of,
    kernel_of,
    positive,
    spans_of,
    windows_of,
)
from crosschip.ir import Dim, ModelError, Operand, UnsupportedError
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import Pad


@imports("Conv")
def conv(node: Node) -> Operand:
    return convolution_of(node, node[0], node[1], node.optional(2))


@imports("com.microsoft.FusedConv")
def fused_conv(node: Node) -> Operand:
    """Another image may be added before the activation."""
    kind, numbers = node.text("activation", ""), node.reals("activation_params", ())
    convolved = convolution_of(node, node[0], node[1], node.optional(2))
    addend = node.optional(3)
    return activated(
        node, convolved if addend is None else node.add(Add, convolved, addend), kind, numbers
    )


def convolution_of(
    node: Node, input: Operand, filter: Operand, bias: Operand | None = None
) -> Operand:
    """The convolution that a node's attributes describe, of these operands."""
    kernel = kernel_of(node, filter)
    rank, image = len(kernel), image_of(input, len(kernel))
    windows = windows_of(node, kernel)
    group = _group(node)
    if rank == 3:
        return _conv_3d(node, input, filter, bias, explicit(windows, image), group)
    if rank == 1:
        input, filter = node.add(Unsqueeze, input, (2,)), node.add(Unsqueeze, filter, (2,))
        windows = flat(windows)
    result = node.add(Conv2D, input, filter, bias, group=group, **arguments(windows))
    return node.add(Squeeze, result, (2,)) if rank == 1 else result


def _conv_3d(
    node: Node,
    input: Operand,
    filter: Operand,
    bias: Operand | None,
    windows: Windows,
    group: int,
) -> Operand:
    """Each plane of the output is a convolution of planes of the input, side by side as channels.

    For a window of `k` planes, a channel becomes `k` channels.
    """
    batch, channels, depth, height, width = static_shape_of(input)
    out, per_group, *kernel = static_shape_of(filter)
    lows = np.arange(0, depth + windows.before[0] + windows.after[0] - windows.spans[0] + 1)
    starts = lows[:: windows.strides[0]]
    planes = starts[:, None] + np.arange(kernel[0]) * windows.dilations[0]
    pads = np.zeros((5, 2), np.int64)
    pads[2] = windows.before[0], windows.after[0]
    padded = node.add(Pad, input, pads.ravel()) if pads.any() else input
    stacked = node.add(Gather, padded, planes, 2)
    stacked = node.add(Transpose, stacked, (0, 2, 1, 3, 4, 5))
    merged = node.add(Reshape, stacked, (batch * len(starts), channels * kernel[0], height, width))
    weights = node.add(Reshape, filter, (out, per_group * kernel[0], *kernel[1:]))
    planar = arguments(windows.on(1, 2))
    result = node.add(Conv2D, merged, weights, bias, group=group, **planar)
    sizes = static_shape_of(result)[2:]
    unstacked = node.add(Reshape, result, (batch, len(starts), out, *sizes))
    return node.add(Transpose, unstacked, (0, 2, 1, 3, 4))


@imports("ConvTranspose")
def conv_transpose(node: Node) -> Operand:
    """Derive the padding from the output's size, where that is given or is `SAME`."""
    kernel = kernel_of(node, node[1])
    rank, image = len(kernel), image_of(node[0], len(kernel))
    windows = windows_of(node, kernel)
    more = node.integers("output_padding", (0,) * rank)
    if len(more) != rank or min(more) < 0:
        raise ModelError(f"output_padding {list(more)} are not {rank} numbers from 0 up")
    windows, more = _cut(node, windows, image, more)
    input, filter, bias, group = node[0], node[1], node.optional(2), _group(node)
    if rank == 3:
        return _conv_transpose_3d(node, input, filter, bias, windows, more, group)
    if rank == 1:
        input, filter = node.add(Unsqueeze, input, (2,)), node.add(Unsqueeze, filter, (2,))
        windows, more = flat(windows), (0, *more)
    result = node.add(
        Conv2DTranspose,
        input,
        filter,
        bias,
        group=group,
        output_padding=more,
        **arguments(windows),
    )
    return node.add(Squeeze, result, (2,)) if rank == 1 else result


def _cut(
    node: Node, windows: Windows, image: Sequence[Dim], more: Numbers
) -> tuple[Windows, Numbers]:
    """The padding that is cut off, in numbers, and what is added at the end."""
    totals = _total_padding(node, windows, image, more)
    if totals is None:
        return explicit(windows, image), more
    cut = [max(0, total) for total in totals]
    more = tuple(m + c - t for m, c, t in zip(more, cut, totals, strict=True))
    lower = windows.auto_pad is AutoPad.SAME
    halves = [(t // 2, t - t // 2) if lower else (t - t // 2, t // 2) for t in cut]
    pads = [pad for half in halves for pad in half]
    return replace(windows, auto_pad=AutoPad.NONE, pads=pads), more


def _total_padding(
    node: Node, windows: Windows, image: Sequence[Dim], more: Numbers
) -> list[int] | None:
    """The pixels that the full result of a transposed convolution has more than its output.

    `None` if the model does not give the size of the output but the padding. Negative where the
    output is the larger one.
    """
    output_shape = node.optional_integers("output_shape")
    if output_shape is None:
        if not windows.auto_pad.keeps_size:
            return None
        triples = zip(spans_of(windows), more, windows.strides, strict=True)
        return [span + extra - stride for span, extra, stride in triples]
    output = positive("output_shape", output_shape[-windows.rank :], windows.rank)
    sizes = [size for size in image if isinstance(size, int)]
    if len(sizes) != windows.rank:
        raise UnsupportedError("output_shape needs an input of fixed height and width")
    return [
        (size - 1) * stride + span + extra - wanted
        for size, stride, span, extra, wanted in zip(
            sizes, windows.strides, spans_of(windows), more, output, strict=True
        )
    ]


def _conv_transpose_3d(
    node: Node,
    input: Operand,
    filter: Operand,
    bias: Operand | None,
    windows: Windows,
    more: Numbers,
    group: int,
) -> Operand:
    """Each plane of the input makes `k` planes, which a matrix product adds up where they lie."""
    batch, channels, depth, height, width = static_shape_of(input)
    _, per_group, *kernel = static_shape_of(filter)
    turned = node.add(Transpose, input, (0, 2, 1, 3, 4))
    merged = node.add(Reshape, turned, (batch * depth, channels, height, width))
    weights = node.add(Reshape, filter, (channels, per_group * kernel[0], *kernel[1:]))
    planar = arguments(windows.on(1, 2))
    image = node.add(
        Conv2DTranspose, merged, weights, group=group, output_padding=more[1:], **planar
    )
    out, (rows, columns) = per_group * group, static_shape_of(image)[2:]
    planes = node.add(Reshape, image, (batch, depth, out, kernel[0], rows * columns))
    planes = node.add(Transpose, planes, (0, 2, 4, 1, 3))
    planes = node.add(Reshape, planes, (batch, out, rows * columns, depth * kernel[0]))
    full = (depth - 1) * windows.strides[0] + windows.spans[0] + more[0]
    lies = np.arange(depth)[:, None] * windows.strides[0] + (
        np.arange(kernel[0]) * windows.dilations[0]
    )
    wanted = np.arange(windows.before[0], full - windows.after[0])
    places = (lies.reshape(-1, 1) == wanted).astype(input.type.element_type.dtype)
    summed = node.add(Transpose, node.add(MatMul, planes, places), (0, 1, 3, 2))
    result = node.add(Reshape, summed, (batch, out, len(wanted), rows, columns))
    if bias is None:
        return result
    return node.add(Add, result, node.add(Reshape, bias, (-1, 1, 1, 1)))


@imports("DeformConv")
def deform_conv(node: Node) -> Operand:
    kernel = kernel_of(node, node[1])
    if len(kernel) != 2:
        raise UnsupportedError(f"images of {len(kernel)} axes; only those of 2 can be expressed")
    offset_group = node.integer("offset_group")
    windows = windows_of(node, kernel)
    return node.add(
        DeformableConv2D,
        input=node[0],
        offset=node[2],
        mask=node.optional(4),
        filter=node[1],
        bias=node.optional(3),
        pads=windows.pads,
        strides=windows.strides,
        group=_group(node),
        deformable_group=offset_group,
        dilations=windows.dilations,
    )


def _group(node: Node) -> int:
    group = node.integer("group", 1)
    if group < 1:
        raise ModelError(f"group {group} is not a number from 1 up")
    return group
