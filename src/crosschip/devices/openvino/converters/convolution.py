"""Convolutions of [N, C, H, W] images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import own_size
from crosschip.devices.openvino.converters.table import before_unsqueezing, converts
from crosschip.devices.openvino.converters.windows import window_arguments
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal, Rule
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
    convolution, filters = _convolution(g, op, (op.filter.type.static_shape or ())[1:])
    arguments = {"dilations": op.dilations, **window_arguments(op)}
    return _biased(g, op, convolution(g[op.input], filters, **arguments))


def _convolution(g: Graph, op: Conv2D, shape: Sequence[int]) -> tuple[Callable[..., Node], Value]:
    """The convolution, and its filters, of which each has the shape."""
    out = (op.filter.type.static_shape or ())[0]
    if op.group == 1:
        return ops.convolution, g.reshaped(op.filter, [out, *shape])
    return ops.group_convolution, g.reshaped(op.filter, [op.group, out // op.group, *shape])


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
    if not axes or axes[-1] != _HEIGHT or axes[0] < 0:
        return None
    return ops.unsqueeze(line, g.int64(axes[:-1])) if axes[:-1] else line


def _along_line(g: Graph, op: Conv2D, line: Value) -> Node:
    """The convolution of an image of height 1, along its width."""
    _, within, _, width = op.filter.type.static_shape or ()
    convolution, filters = _convolution(g, op, (within, width))
    arguments = {"dilations": op.dilations[1:], **window_arguments(op, 1)}
    result = _biased(g, op, convolution(line, filters, **arguments))
    return ops.unsqueeze(result, g.int64([_HEIGHT]))


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


def _transposed(op: Conv2DTranspose) -> Refusal | None:
    return own_size(op) or _grouped(op)


@converts(Conv2DTranspose, limit=_transposed, nonempty=True)
def conv_2d_transpose(g: Graph, op: Conv2DTranspose) -> Node:
    if op.group == 1:
        convolution, filters = ops.convolution_backprop_data, g[op.filter]
    else:
        into, *rest = op.filter.type.static_shape or ()
        convolution = ops.group_convolution_backprop_data
        filters = g.reshaped(op.filter, [op.group, into // op.group, *rest])
    arguments = {
        "dilations": op.dilations,
        "output_padding": op.output_padding,
        **window_arguments(op),
    }
    return _biased(g, op, convolution(g[op.input], filters, **arguments))


def _biased(g: Graph, op: Conv2D | Conv2DTranspose | DeformableConv2D, result: Node) -> Node:
    if op.bias:
        beside = [1] * (len(result.get_output_partial_shape(0)) - 2)
        return ops.add(result, g.reshaped(op.bias, [1, -1, *beside]))
    return result


@converts(DeformableConv2D, limit=_grouped, nonempty=True)
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
    return _biased(g, op, result)
