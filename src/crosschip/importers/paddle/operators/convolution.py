"""Convolutions."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.operators.windows import expect_channels_first, padding
from crosschip.importers.paddle.table import imports
from crosschip.ops.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.windows import AutoPad


@imports("conv2d", "depthwise_conv2d")
def conv2d(op: Context) -> None:
    expect_channels_first(op)
    auto_pad, pads = padding(op)
    # Paddle takes a padding of SAME to mean that the filter is not dilated either.
    dilations = (1, 1) if auto_pad is AutoPad.SAME else op.integers("dilations", (1, 1))
    op.make(
        Conv2D,
        op.input("Input"),
        op.input("Filter"),
        op.optional_input("Bias"),
        auto_pad=auto_pad,
        pads=pads,
        strides=op.integers("strides", (1, 1)),
        group=op.integer("groups", 1),
        dilations=dilations,
        output="Output",
    )


@imports("conv2d_transpose", "depthwise_conv2d_transpose")
def conv2d_transpose(op: Context) -> None:
    expect_channels_first(op)
    op.expect("padding_algorithm", "EXPLICIT", "VALID")
    auto_pad, pads = padding(op)
    op.make(
        Conv2DTranspose,
        op.input("Input"),
        op.input("Filter"),
        op.optional_input("Bias"),
        auto_pad=auto_pad,
        pads=pads,
        strides=op.integers("strides", (1, 1)),
        group=op.integer("groups", 1),
        dilations=op.integers("dilations", (1, 1)),
        output_padding=op.integers("output_padding", ()) or (0, 0),
        output_shape=op.integers("output_size", ()) or None,
        output="Output",
    )
