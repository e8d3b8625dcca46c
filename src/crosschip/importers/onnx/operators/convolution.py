"""Convolutions of images."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.importers.onnx.node import Node, imports
from crosschip.importers.onnx.operators.windows import (
    Windows,
    explicit,
    image_of,
    kernel_of,
    pair,
    split_padding,
    windows_of,
)
from crosschip.ir import Dim, ModelError, Operand, UnsupportedError
from crosschip.ops.convolution import Conv2D, Conv2DTranspose


@imports("Conv")
def conv(node: Node) -> Operand:
    image = image_of(node)
    windows = explicit(windows_of(node, kernel_of(node, node[1])), image)
    return node.add(
        Conv2D,
        input=node[0],
        filter=node[1],
        bias=node.optional(2),
        auto_pad=windows.auto_pad,
        pads=windows.pads,
        strides=windows.strides,
        group=_group(node),
        dilations=windows.dilations,
    )


@imports("ConvTranspose")
def conv_transpose(node: Node) -> Operand:
    """Where the output's size is given, or is `SAME`, the padding follows from it."""
    image = image_of(node)
    windows = windows_of(node, kernel_of(node, node[1]))
    more = node.integers("output_padding", (0, 0))
    if len(more) != 2 or min(more) < 0:
        raise ModelError(f"output_padding {list(more)} are not 2 numbers from 0 up")
    pads = windows.pads
    totals = _total_padding(node, windows, image, more)
    if totals is not None:
        cut = [max(0, total) for total in totals]
        more = (more[0] + cut[0] - totals[0], more[1] + cut[1] - totals[1])
        pads = split_padding(cut, more_before=windows.mode != "SAME_UPPER")
    return node.add(
        Conv2DTranspose,
        input=node[0],
        filter=node[1],
        bias=node.optional(2),
        pads=pads,
        strides=windows.strides,
        group=_group(node),
        dilations=windows.dilations,
        output_padding=more,
    )


def _total_padding(
    node: Node, windows: Windows, image: Sequence[Dim], more: Sequence[int]
) -> Sequence[int] | None:
    """How much larger the full result of a transposed convolution is than its output.

    `None` if the model does not give the size of the output but the padding. Negative where the
    output is the larger one.
    """
    asked = node.optional_integers("output_shape")
    if asked is None:
        if not windows.mode.startswith("SAME"):
            return None
        return [windows.spans[i] + more[i] - windows.strides[i] for i in range(2)]
    output = pair("output_shape", asked[-2:])
    sizes = [size for size in image if isinstance(size, int)]
    if len(sizes) != 2:
        raise UnsupportedError("output_shape needs an input of fixed height and width")
    return [
        (sizes[i] - 1) * windows.strides[i] + windows.spans[i] + more[i] - output[i]
        for i in range(2)
    ]


def _group(node: Node) -> int:
    group = node.integer("group", 1)
    if group < 1:
        raise ModelError(f"group {group} is not a number from 1 up")
    return group
