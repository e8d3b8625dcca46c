"""Convolutions: NHWC images, and filters in TensorFlow Lite's layouts."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.enumerations import Padding
from crosschip.flatbuffer.schemas.tflite.options import Conv2DOptions
from crosschip.importers.facts import size_of
from crosschip.importers.tflite.bias import accumulated_bias
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D

PADDINGS = {Padding.SAME: AutoPad.SAME, Padding.VALID: AutoPad.VALID}


@imports("CONV_2D")
def conv_2d(node: Node) -> Operand:
    """Import a convolution with a filter [C_out, H, W, C_in / group]."""
    options = node.options(Conv2DOptions)
    image, filter = node.channels_first(node[0]), node.transpose(node[1], (0, 3, 1, 2))
    convolved = node.add(
        Conv2D,
        image,
        filter,
        accumulated_bias(node, node.optional(2), image, filter),
        group=size_of(node[0], 3) // size_of(node[1], 3),
        auto_pad=PADDINGS[Padding(options.padding)],
        strides=(options.stride_h, options.stride_w),
        dilations=(options.dilation_h_factor, options.dilation_w_factor),
        fuse_code=node.fuse_code(options.fused_activation_function),
    )
    return node.channels_last(node.fit(convolved, node.output()))
