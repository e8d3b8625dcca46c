"""Convolutions of images of one, two and three axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crosschip.importers.onnx.node import Node, imports
from crosschip.importers.onnx.operators.activation import activated
from crosschip.importers.onnx.windows import (
    Numbers,
    arguments,
    explicit,
    image_of,
    kernel_of,
    positive,
    spans_of,
    windows_of,
)
from crosschip.ir import Dim, ModelError, Operand, UnsupportedError
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)

_CONVS = {1: Conv1D, 2: Conv2D, 3: Conv3D}
_CONV_TRANSPOSES = {1: Conv1DTranspose, 2: Conv2DTranspose, 3: Conv3DTranspose}


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
    image_of(input, len(kernel))
    operator, window = _CONVS[len(kernel)], arguments(windows_of(node, kernel))
    return node.add(operator, input, filter, bias, group=group_of(node), **window)


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
    return node.add(
        _CONV_TRANSPOSES[rank],
        node[0],
        node[1],
        node.optional(2),
        group=group_of(node),
        output_padding=more,
        **arguments(windows),
    )


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


def group_of(node: Node) -> int:
    group = node.integer("group", 1)
    if group < 1:
        raise ModelError(f"group {group} is not a number from 1 up")
    return group
