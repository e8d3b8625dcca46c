"""Convolutions."""

from __future__ import annotations

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import no_output_shape
from crosschip.devices.openvino.converters.table import converts
from crosschip.devices.openvino.converters.windows import window_arguments
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import (
    Conv,
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    ConvTranspose,
)
from crosschip.ops.standard.deformable import DeformableConv2D
from crosschip.ops.standard.integers import ConvInteger


def _check_filter(op: Conv | ConvTranspose | DeformableConv2D) -> Refusal | None:
    if op.filter.type.static_shape is None:
        return Refusal("filter", "its shape must be known", Rule.SHAPE)
    if op.input.value is not None and op.filter.value is not None:
        # Quirk `constant-convolution`.
        return Refusal("input", "is constant, and so is the filter")
    return None


@converts(Conv1D, Conv2D, Conv3D, limit=_check_filter, nonempty=True)
def conv(g: Graph, op: Conv) -> Node:
    require_covered(g, op)
    out, *rest = op.filter.type.static_shape or ()
    if op.group == 1:
        convolution, filters = ops.convolution, g[op.filter]
    else:
        convolution = ops.group_convolution
        filters = g.reshaped(op.filter, [op.group, out // op.group, *rest])
    arguments = {"dilations": op.dilations, **window_arguments(op)}
    return _add_bias(g, op, convolution(g[op.input], filters, **arguments))


def require_covered(g: Graph, op: Conv | ConvInteger) -> None:
    """Refuse runs with images that the filter does not fit in."""
    if op.auto_pad.keeps_size:
        return
    kernel = (op.filter.type.static_shape or ())[2:]
    for axis in range(2, 2 + len(kernel)):
        span = op.windows(kernel).spans[axis - 2]
        padding = 0 if op.auto_pad is AutoPad.VALID else sum(op.pads[2 * axis - 4 : 2 * axis - 2])
        size = (op.input.type.shape or ())[axis]
        if not isinstance(size, int) and padding + 1 < span:
            rule, minimum = f"input: axis {axis} is smaller than the filter", span - padding
            if not g.require_sizes(op, rule, [size - minimum]):
                g.require(op, rule, ops.greater_equal(g.size(op.input, axis), g.scalar(minimum)))


def _check_transposed(op: ConvTranspose) -> Refusal | None:
    return no_output_shape(op) or _check_filter(op)


@converts(Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, limit=_check_transposed, nonempty=True)
def conv_transpose(g: Graph, op: ConvTranspose) -> Node:
    if op.group == 1:
        convolution, filters = ops.convolution_backprop_data, g[op.filter]
    else:
        channels, *rest = op.filter.type.static_shape or ()
        convolution = ops.group_convolution_backprop_data
        filters = g.reshaped(op.filter, [op.group, channels // op.group, *rest])
    arguments = {
        "dilations": op.dilations,
        "output_padding": op.output_padding,
        **window_arguments(op),
    }
    return _add_bias(g, op, convolution(g[op.input], filters, **arguments))


def _add_bias(g: Graph, op: Conv | ConvTranspose | DeformableConv2D, result: Node) -> Node:
    if op.bias:
        ones = [1] * (len(result.get_output_partial_shape(0)) - 2)
        return ops.add(result, g.reshaped(op.bias, [1, -1, *ones]))
    return result


@converts(DeformableConv2D, limit=_check_filter, nonempty=True)
def deformable_conv_2d(g: Graph, op: DeformableConv2D) -> Node:
    top, bottom, left, right = op.pads
    result = ops.deformable_convolution(
        *(g[operand] for operand in (op.input, op.offset, op.filter)),
        *(op.strides, (top, left), (bottom, right), op.dilations),
        g[op.mask] if op.mask else None,
        group=op.group,
        deformable_group=op.deformable_group,
        bilinear_interpolation_pad=True,
    )
    return _add_bias(g, op, result)
