"""Convolutions: images with their channels last, and filters in TensorFlow Lite's layouts."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.flatbuffer.schemas.tflite.enumerations import Padding
from crosschip.flatbuffer.schemas.tflite.options import (
    Conv2DOptions,
    Conv3DOptions,
    DepthwiseConv2DOptions,
    TransposeConvOptions,
)
from crosschip.importers.facts import rank_of, size_of
from crosschip.importers.tflite.bias import accumulated_bias
from crosschip.importers.tflite.hybrid import is_hybrid, round_activations
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ModelError, Operand
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose

PADDINGS = {Padding.SAME: AutoPad.SAME, Padding.VALID: AutoPad.VALID}


@imports("CONV_2D")
def conv_2d(node: Node) -> Operand:
    """Import a convolution with a filter [C_out, H, W, C_in / group]."""
    options = node.options(Conv2DOptions)
    filter = node.transpose(node[1], (0, 3, 1, 2))
    group = _group(size_of(node[0], 3), size_of(node[1], 3))
    per_channel = len(filter.type.quantization.scale) > 1 if filter.type.quantization else False
    return _convolve(node, filter, options, group, asymmetric=per_channel or group > 1)


@imports("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(node: Node) -> Operand:
    """Import a convolution of single channels with a filter [1, H, W, C_out]."""
    options = node.options(DepthwiseConv2DOptions)
    filter = node.transpose(node[1], (3, 0, 1, 2))
    return _convolve(node, filter, options, size_of(node[0], 3), asymmetric=True)


def _convolve(
    node: Node,
    filter: Operand,
    options: Conv2DOptions | DepthwiseConv2DOptions,
    group: int,
    asymmetric: bool,
) -> Operand:
    """Add a two-dimensional convolution; `asymmetric` is about hybrid ones."""
    image = node[0]
    if is_hybrid(image, filter):
        image = round_activations(node, image, (1, 2, 3), asymmetric)
    image = node.channels_first(image)
    convolved = node.add(
        Conv2D,
        image,
        filter,
        accumulated_bias(node, node.optional(2), image, filter),
        group=group,
        auto_pad=PADDINGS[Padding(options.padding)],
        strides=(options.stride_h, options.stride_w),
        dilations=(options.dilation_h_factor, options.dilation_w_factor),
        fuse_code=node.fuse_code(options.fused_activation_function),
    )
    return node.channels_last(node.fit(convolved, node.output()))


@imports("CONV_3D")
def conv_3d(node: Node) -> Operand:
    """Import a convolution with a filter [D, H, W, C_in, C_out]."""
    options = node.options(Conv3DOptions)
    convolved = node.add(
        Conv3D,
        node.channels_first(node[0]),
        node.transpose(node[1], (4, 3, 0, 1, 2)),
        node.optional(2),
        group=_group(size_of(node[0], 4), size_of(node[1], 3)),
        auto_pad=PADDINGS[Padding(options.padding)],
        strides=(options.stride_d, options.stride_h, options.stride_w),
        dilations=(
            options.dilation_d_factor,
            options.dilation_h_factor,
            options.dilation_w_factor,
        ),
        fuse_code=node.fuse_code(options.fused_activation_function),
    )
    return node.channels_last(convolved)


@imports("TRANSPOSE_CONV")
def transpose_conv(node: Node) -> Operand:
    """Import a transposed convolution with a filter [C_out, H, W, C_in]."""
    options = node.options(TransposeConvOptions)
    strides = options.stride_h, options.stride_w
    return add_transposed(
        node,
        node[2],
        node.transpose(node[1], (3, 0, 1, 2)),
        node.optional(3),
        node.optional(0),
        Padding(options.padding),
        strides,
        fuse_code=node.fuse_code(options.fused_activation_function),
    )


@imports("CONV_3D_TRANSPOSE")
def conv_3d_transpose(node: Node) -> Operand:
    """Import a transposed convolution with a filter [D, H, W, C_out, C_in]."""
    options = node.options(Conv3DOptions)
    return add_transposed(
        node,
        node[2],
        node.transpose(node[1], (4, 3, 0, 1, 2)),
        node.optional(3),
        node.optional(0),
        Padding(options.padding),
        (options.stride_d, options.stride_h, options.stride_w),
        dilations=(
            options.dilation_d_factor,
            options.dilation_h_factor,
            options.dilation_w_factor,
        ),
        fuse_code=node.fuse_code(options.fused_activation_function),
    )


def add_transposed(
    node: Node,
    input: Operand,
    filter: Operand,
    bias: Operand | None,
    output_shape: Operand | None,
    padding: Padding,
    strides: Sequence[int],
    dilations: Sequence[int] = (),
    fuse_code: Fuse = Fuse.NONE,
) -> Operand:
    """Add a transposed convolution of an image [N, …, C] with a filter [C_in, C_out, …].

    Args:
        node: receives the operations.
        input: the image.
        filter: the filter.
        bias: the bias.
        output_shape: the shape of the output, [N, …, C]; `None` for that which the padding gives.
        padding: with `SAME`, half of what the filter extends beyond the output is cut off before
            it; with `VALID`, all is cut off after it.
        strides: the strides.
        dilations: the dilations; all 1 if empty.
        fuse_code: the fused activation.
    """
    rank = rank_of(input) - 2
    dilations = dilations or (1,) * rank
    image = node.channels_first(input)
    spans = [
        (size_of(filter, 2 + axis) - 1) * dilation + 1 for axis, dilation in enumerate(dilations)
    ]
    sizes = None if output_shape is None or output_shape.value is None else output_shape.value
    if sizes is None:
        extra = [max(0, stride - span) for stride, span in zip(strides, spans, strict=True)]
        padded: dict[str, object] = {"auto_pad": AutoPad.SAME}
        if padding is not Padding.SAME:
            padded = {"output_padding": tuple(extra)}
    else:
        if sizes.shape != (rank + 2,):
            raise ModelError(f"the output's shape is {sizes.tolist()}")
        padded = _cut(input, sizes[1:-1].tolist(), spans, padding, strides)
    convolved = node.add(
        Conv2DTranspose if rank == 2 else Conv3DTranspose,
        image,
        filter,
        accumulated_bias(node, bias, image, filter),
        strides=tuple(strides),
        dilations=tuple(dilations),
        fuse_code=fuse_code,
        **padded,
    )
    return node.channels_last(node.fit(convolved, node.output()))


def _cut(
    input: Operand,
    sizes: Sequence[int],
    spans: Sequence[int],
    padding: Padding,
    strides: Sequence[int],
) -> dict[str, object]:
    """Return the pixels to cut off before and after each axis, and those to append."""
    pads: list[int] = []
    appended: list[int] = []
    for axis, (size, span, stride) in enumerate(zip(sizes, spans, strides, strict=True)):
        full = (size_of(input, 1 + axis) - 1) * stride + span
        before = 0
        if padding is Padding.SAME:
            before = max(0, (-(-size // stride) - 1) * stride + span - size) // 2
        after = full - before - size
        pads += [before, max(0, after)]
        appended.append(max(0, -after))
    return {"pads": tuple(pads), "output_padding": tuple(appended)}


def _group(channels: int, per_group: int) -> int:
    if not per_group or channels % per_group:
        raise ModelError(f"a filter of {per_group} channels for an image of {channels}")
    return channels // per_group
