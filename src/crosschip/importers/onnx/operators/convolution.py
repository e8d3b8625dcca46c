"""Convolutions over one, two and three spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crosschip.importers.onnx.node import Node, imports
from crosschip.importers.onnx.operators.activation import add_activation
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
    return add_convolution(node, node[0], node[1], node.optional(2))


@imports("com.microsoft.FusedConv")
def fused_conv(node: Node) -> Operand:
    """Import a convolution, an optional addition and an activation."""
    kind, numbers = node.text("activation", ""), node.reals("activation_params", ())
    convolved = add_convolution(node, node[0], node[1], node.optional(2))
    addend = node.optional(3)
    return add_activation(
        node, convolved if addend is None else node.add(Add, convolved, addend), kind, numbers
    )


def add_convolution(
    node: Node, input: Operand, filter: Operand, bias: Operand | None = None
) -> Operand:
    """Add the convolution that a node's attributes describe, with these operands."""
    kernel = kernel_of(node, filter)
    image_of(input, len(kernel))
    operator, window = _CONVS[len(kernel)], arguments(windows_of(node, kernel))
    return node.add(operator, input, filter, bias, group=group_of(node), **window)


@imports("ConvTranspose")
def conv_transpose(node: Node) -> Operand:
    """Import ConvTranspose; a given output size or `SAME` determines the padding."""
    kernel = kernel_of(node, node[1])
    rank, image = len(kernel), image_of(node[0], len(kernel))
    windows = windows_of(node, kernel)
    output_padding = node.integers("output_padding", (0,) * rank)
    if len(output_padding) != rank or min(output_padding) < 0:
        raise ModelError(f"output_padding {list(output_padding)} are not {rank} numbers from 0 up")
    windows, output_padding = _resolve_padding(node, windows, image, output_padding)
    return node.add(
        _CONV_TRANSPOSES[rank],
        node[0],
        node[1],
        node.optional(2),
        group=group_of(node),
        output_padding=output_padding,
        **arguments(windows),
    )


def _resolve_padding(
    node: Node, windows: Windows, image: Sequence[Dim], output_padding: Numbers
) -> tuple[Windows, Numbers]:
    """Return windows with explicit padding, and the output padding."""
    totals = _total_padding(node, windows, image, output_padding)
    if totals is None:
        return explicit(windows, image), output_padding
    cut = [max(0, total) for total in totals]
    output_padding = tuple(m + c - t for m, c, t in zip(output_padding, cut, totals, strict=True))
    lower = windows.auto_pad is AutoPad.SAME
    halves = [(t // 2, t - t // 2) if lower else (t - t // 2, t // 2) for t in cut]
    pads = [pad for half in halves for pad in half]
    return replace(windows, auto_pad=AutoPad.NONE, pads=pads), output_padding


def _total_padding(
    node: Node, windows: Windows, image: Sequence[Dim], output_padding: Numbers
) -> list[int] | None:
    """Return the size of the full transposed convolution minus the output size, per axis.

    `None` if the model specifies the padding instead of the output size. Negative where the output
    is larger.
    """
    output_shape = node.optional_integers("output_shape")
    if output_shape is None:
        if not windows.auto_pad.keeps_size:
            return None
        triples = zip(spans_of(windows), output_padding, windows.strides, strict=True)
        return [span + extra - stride for span, extra, stride in triples]
    output = positive("output_shape", output_shape[-windows.rank :], windows.rank)
    sizes = [size for size in image if isinstance(size, int)]
    if len(sizes) != windows.rank:
        raise UnsupportedError("output_shape needs an input of fixed height and width")
    return [
        (size - 1) * stride + span + extra - output_size
        for size, stride, span, extra, output_size in zip(
            sizes, windows.strides, spans_of(windows), output_padding, output, strict=True
        )
    ]


def group_of(node: Node) -> int:
    group = node.integer("group", 1)
    if group < 1:
        raise ModelError(f"group {group} is not a number from 1 up")
    return group
