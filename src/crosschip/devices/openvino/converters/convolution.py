"""Convolutions of [N, C, H, W] images."""

from __future__ import annotations

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import own_size
from crosschip.devices.openvino.converters.table import before_unsqueezing, converts
from crosschip.devices.openvino.converters.windows import window_arguments
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D
from crosschip.ops.standard.integers import Conv2DInteger

_HEIGHT = 2
"""The axis of an image that runs down."""


def _grouped(op: Conv2D | Conv2DTranspose | DeformableConv2D) -> Refusal | None:
    if op.filter.type.static_shape is None:
        return Refusal("filter", "its shape must be known", Rule.SHAPE)
    if op.input.value is not None and op.filter.value is not None:
        # OpenVINO computes that once, and then adds the bias again and again.
        return Refusal("input", "is constant, and so is the filter")
    return None


@converts(Conv2D, limit=_grouped, nonempty=True)
def conv_2d(g: Graph, op: Conv2D) -> Node:
    covered(g, op)
    line = _line(g, op)
    if line is not None:
        return _along_line(g, op, line)
    image = _wide(g[op.input], op)
    if op.group > 1:
        out, *rest = op.filter.type.static_shape or ()
        convolution = ops.group_convolution
        filters = _wide(g.reshaped(op.filter, [op.group, out // op.group, *rest]), op)
    else:
        convolution, filters = ops.convolution, _wide(g[op.filter], op)
        if lone_column(op):
            image, filters = _with_channel(g, image), _with_channel(g, filters)
    window = window_arguments(op)
    if not skips_border(op):
        return _biased(g, op, convolution(image, filters, dilations=op.dilations, **window))
    every = convolution(image, filters, dilations=op.dilations, **{**window, "strides": (1, 1)})
    start, end = g.int64([0, 0]), g.int64([np.iinfo(np.int32).max] * 2)
    result = ops.slice(every, start, end, g.int64(op.strides), g.int64([2, 3]))
    return _biased(g, op, result)


def _line(g: Graph, op: Conv2D) -> Value | None:
    """What an image is that was given a height of 1, if nothing is computed along that.

    Images of two axes OpenVINO would lay out anew before and after, as it does not see through
    the views of what is next to it.
    """
    height = (op.filter.type.static_shape or ())[_HEIGHT]
    before = before_unsqueezing(g[op.input])
    if before is None or height != 1 or any(op.pads[:2]) or not op.filter.is_constant:
        return None
    line, axes = before
    if skips_border(op) or lone_column(op) or not axes or axes[-1] != _HEIGHT or axes[0] < 0:
        return None
    return ops.unsqueeze(line, g.int64(axes[:-1])) if axes[:-1] else line


def _along_line(g: Graph, op: Conv2D, line: Value) -> Node:
    """The convolution of an image of height 1, along its width."""
    out, within, _, width = op.filter.type.static_shape or ()
    window = {"dilations": op.dilations[1:], **window_arguments(op, 1)}
    if op.group > 1:
        filters = g.reshaped(op.filter, [op.group, out // op.group, within, width])
        made = ops.group_convolution(_wide(line, op), _wide(filters, op), **window)
    else:
        filters = g.reshaped(op.filter, [out, within, width])
        made = ops.convolution(_wide(line, op), _wide(filters, op), **window)
    return ops.unsqueeze(_biased(g, op, made), g.int64([_HEIGHT]))


def skips_border(op: Conv2D | Conv2DInteger) -> bool:
    """Tell whether OpenVINO would leave pixels out before it pads the image.

    Where each window is one pixel (2026.4), it takes the strides to what makes the image.
    """
    kernel = (op.filter.type.shape or ())[2:]
    return kernel == (1, 1) and max(op.strides) > 1 and any(op.pads)


def covered(g: Graph, op: Conv2D | Conv2DInteger) -> None:
    """Refuse runs with images that the filter does not fit in."""
    if op.auto_pad.keeps_size:
        return
    kernel = (op.filter.type.static_shape or ())[2:]
    for axis in (2, 3):
        span = op.windows(kernel).spans[axis - 2]
        padding = 0 if op.auto_pad is AutoPad.VALID else sum(op.pads[2 * axis - 4 : 2 * axis - 2])
        size = (op.input.type.shape or ())[axis]
        if not isinstance(size, int) and padding + 1 < span:
            rule, least = f"input: axis {axis} is smaller than the filter", span - padding
            if not g.require_sizes(op, rule, [size - least]):
                g.require(op, rule, ops.greater_equal(g.size(op.input, axis), g.scalar(least)))


def lone_column(op: Conv2D | Conv2DInteger) -> bool:
    """Tell whether OpenVINO would read the image with the wrong stride.

    It does (2026.4, with AVX-512) where there is one channel, vertical strides of 1 and horizontal
    ones above, and an output that is one column wide and higher than that.
    """
    _, channels, _, width = op.filter.type.static_shape or ()
    apart = op.strides[0] == 1 and op.strides[1] > 1 and op.dilations[1] == 1 and width > 1
    columns = (op.outputs[0].type.shape or ())[3]
    return channels == 1 and apart and (columns == 1 or not isinstance(columns, int))


def _with_channel(g: Graph, value: Value) -> Node:
    """An image or filters of one channel with another one that is 0."""
    zero = ops.convert(g.constant(np.array(0, np.float32)), value.get_element_type())
    return ops.pad(value, g.int64([0] * 4), g.int64([0, 1, 0, 0]), "constant", zero)


def _wide(value: Value, op: Operator) -> Value:
    """A bfloat16 tensor as float32.

    On bfloat16, OpenVINO (2026.4, with AVX-512) reads padding from beyond small images, and with an
    infinity makes NaN of what is beside it.
    """
    return ops.convert(value, "f32") if _is_narrow(op) else value


def _is_narrow(op: Operator) -> bool:
    return op.outputs[0].type.element_type is ElementType.BFLOAT16


def _transposed(op: Conv2DTranspose) -> Refusal | None:
    return own_size(op) or _grouped(op)


@converts(Conv2DTranspose, limit=_transposed, nonempty=True)
def conv_2d_transpose(g: Graph, op: Conv2DTranspose) -> Node:
    if op.group == 1:
        convolution, filters = ops.convolution_backprop_data, _wide(g[op.filter], op)
    else:
        into, *rest = op.filter.type.static_shape or ()
        convolution = ops.group_convolution_backprop_data
        filters = _wide(g.reshaped(op.filter, [op.group, into // op.group, *rest]), op)
    arguments = {
        "dilations": op.dilations,
        "output_padding": op.output_padding,
        **window_arguments(op),
    }
    return _biased(g, op, convolution(_wide(g[op.input], op), filters, **arguments))


def _biased(g: Graph, op: Conv2D | Conv2DTranspose | DeformableConv2D, result: Node) -> Node:
    if op.bias:
        beside = [1] * (len(result.get_output_partial_shape(0)) - 2)
        result = ops.add(result, _wide(g.reshaped(op.bias, [1, -1, *beside]), op))
    return ops.convert(result, "bf16") if _is_narrow(op) else result


@converts(DeformableConv2D, limit=_grouped, nonempty=True)
def deformable_conv_2d(g: Graph, op: DeformableConv2D) -> Node:
    top, bottom, left, right = op.pads
    result = ops.deformable_convolution(
        *(_wide(g[operand], op) for operand in (op.input, op.offset, op.filter)),
        *(op.strides, (top, left), (bottom, right), op.dilations),
        _wide(g[op.mask], op) if op.mask else None,
        group=op.group,
        deformable_group=op.deformable_group,
        bilinear_interpolation_pad=True,
    )
    return _biased(g, op, result)
