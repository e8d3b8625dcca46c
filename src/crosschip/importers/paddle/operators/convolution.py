"""Convolutions."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.images import Images, padding, volume_padding
from crosschip.ir import ModelError, Operand, UnsupportedError
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, Conv3D


@imports("conv2d", "depthwise_conv2d")
def conv2d(op: Context) -> None:
    images = Images(op)
    auto_pad, pads = padding(op)
    # Paddle ignores the dilations if the padding is SAME.
    dilations = (1, 1) if auto_pad is AutoPad.SAME else op.integers("dilations", (1, 1))
    images.make(
        Conv2D,
        images.input("Input"),
        op.input("Filter"),
        op.optional_input("Bias"),
        auto_pad=auto_pad,
        pads=pads,
        strides=op.integers("strides", (1, 1)),
        group=op.integer("groups", 1),
        dilations=dilations,
        fuse_code=op.fuse_code(),
        output="Output",
    )


@imports("conv2d_transpose", "depthwise_conv2d_transpose")
def conv2d_transpose(op: Context) -> None:
    images = Images(op)
    image, filter = images.input("Input"), op.input("Filter")
    strides = op.integers("strides", (1, 1))
    auto_pad, pads = padding(op)
    dilations = op.integers("dilations", (1, 1))
    if auto_pad is AutoPad.SAME:
        auto_pad, dilations = AutoPad.NONE, (1, 1)
        pads = _same_pads(image, filter, strides)
    images.make(
        Conv2DTranspose,
        image,
        filter,
        op.optional_input("Bias"),
        auto_pad=auto_pad,
        pads=pads,
        strides=strides,
        group=op.integer("groups", 1),
        dilations=dilations,
        output_padding=op.integers("output_padding", ()) or (0, 0),
        output_shape=op.integers("output_size", ()) or None,
        fuse_code=op.fuse_code(),
        output="Output",
    )


def _same_pads(image: Operand, filter: Operand, strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the pads of a transposed convolution with padding SAME in Paddle.

    They are the pads of a convolution of the input, not those of a convolution of the output.
    """
    if image.type.shape is None or filter.type.shape is None or len(strides) != 2:
        raise UnsupportedError("padding_algorithm 'SAME': the axes of the inputs must be known")
    pads: list[int] = []
    for size, window, stride in zip(
        image.type.shape[2:], filter.type.shape[2:], strides, strict=False
    ):
        if not isinstance(window, int) or (stride != 1 and not isinstance(size, int)):
            raise UnsupportedError(
                f"padding_algorithm 'SAME' with strides {list(strides)} on an image {image.type}: "
                f"its sizes must be known"
            )
        if stride < 1:
            raise ModelError(f"strides: {list(strides)} are not positive")
        remainder = (size - 1) % stride + 1 if isinstance(size, int) else 1
        total = max(window - remainder, 0)
        pads += [total // 2, total - total // 2]
    return tuple(pads)


@imports("conv3d", "depthwise_conv3d")
def conv3d(op: Context) -> None:
    images = Images(op)
    auto_pad, pads = volume_padding(op)
    dilations = (1, 1, 1) if auto_pad is AutoPad.SAME else op.integers("dilations", (1, 1, 1))
    images.make(
        Conv3D,
        images.input("Input"),
        op.input("Filter"),
        auto_pad=auto_pad,
        pads=pads,
        strides=op.integers("strides", (1, 1, 1)),
        group=op.integer("groups", 1),
        dilations=dilations,
        output="Output",
    )
