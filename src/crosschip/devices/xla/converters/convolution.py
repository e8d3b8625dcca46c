"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax.numpy as jnp
from jax import lax

from crosschip.devices.xla.converters.table import converts, decomposed, shape_of
from crosschip.devices.xla.graph import EXACT, ChannelsLast, Graph, Value
from crosschip.ir import Operand
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D

_LAYOUT = ("NHWC", "HWIO", "NHWC")
_MOST_SHIFTS = 128
_MOST_PARTS = 64

converts(DeformableConv2D)(decomposed)


@converts(Conv2D, narrow=True)
def conv_2d(g: Graph, op: Conv2D) -> ChannelsLast:
    (image, filters), summed = g.factors(g.last(op.input), g.filters(op.filter))
    channels, kernel = image.shape[3], filters.shape[:2]
    sides = op.windows(kernel).sides(image.shape[1:3])
    if not g.on_processor or op.group == 1:
        output = _convolved(op, image, filters, sides, summed, op.group)
    elif op.group == channels and kernel[0] * kernel[1] <= _MOST_SHIFTS:
        output = _shifted(op, image.astype(summed), filters.astype(summed), sides)
    elif op.group <= _MOST_PARTS:
        parts = zip(jnp.split(image, op.group, 3), jnp.split(filters, op.group, 3), strict=True)
        output = jnp.concatenate(
            [_convolved(op, part, own, sides, summed, 1) for part, own in parts], 3
        )
    else:
        output = _convolved(op, image, filters, sides, summed, op.group)
    return _biased(g, output, op.bias)


def _convolved(
    op: Conv2D, image: Value, filters: Value, sides: Sequence[int], summed: Any, groups: int
) -> Value:
    """XLA's own convolution."""
    return lax.conv_general_dilated(
        image,
        filters,
        op.strides,
        [sides[:2], sides[2:]],
        rhs_dilation=op.dilations,
        dimension_numbers=_LAYOUT,
        feature_group_count=groups,
        precision=EXACT,
        preferred_element_type=summed,
    )


def _shifted(op: Conv2D, image: Value, filters: Value, sides: Sequence[int]) -> Value:
    """A depthwise convolution as a sum of shifted products: XLA's own takes 100 times as long."""
    channels, out = image.shape[3], filters.shape[3]
    padded = jnp.pad(image, [(0, 0), sides[:2], sides[2:], (0, 0)])
    if out > channels:
        padded = jnp.repeat(padded, out // channels, 3)
    height, width = shape_of(op)[2:]

    def pixels(row: int, column: int) -> Value:
        top, left = row * op.dilations[0], column * op.dilations[1]
        bottom = top + (height - 1) * op.strides[0] + 1
        right = left + (width - 1) * op.strides[1] + 1
        return padded[:, top : bottom : op.strides[0], left : right : op.strides[1]]

    rows, columns = filters.shape[:2]
    return reduce(
        jnp.add,
        (pixels(i, j) * filters[i, j, 0] for i in range(rows) for j in range(columns)),
    )


@converts(Conv2DTranspose, narrow=True)
def conv_2d_transpose(g: Graph, op: Conv2DTranspose) -> ChannelsLast | Sequence[Value]:
    if op.auto_pad is not AutoPad.NONE or op.output_shape is not None or any(op.output_padding):
        return decomposed(g, op)
    (image, filters), summed = g.factors(g.last(op.input), g[op.filter])
    into, per_group, *kernel = filters.shape
    # A group's filters, as those of a convolution: turned around, and output channels last.
    grouped = filters.reshape(op.group, into // op.group, per_group, *kernel)
    turned = jnp.transpose(jnp.flip(grouped, (3, 4)), (3, 4, 1, 0, 2))
    turned = turned.reshape(*kernel, into // op.group, op.group * per_group)
    reach = [d * (k - 1) for d, k in zip(op.dilations, kernel, strict=True)]
    top, bottom, left, right = op.pads
    output = lax.conv_general_dilated(
        image,
        turned,
        (1, 1),
        [(reach[0] - top, reach[0] - bottom), (reach[1] - left, reach[1] - right)],
        lhs_dilation=op.strides,
        rhs_dilation=op.dilations,
        dimension_numbers=_LAYOUT,
        feature_group_count=op.group,
        precision=EXACT,
        preferred_element_type=summed,
    )
    return _biased(g, output, op.bias)


def _biased(g: Graph, output: Any, bias: Operand | None) -> ChannelsLast:
    return ChannelsLast(output if bias is None else output + g[bias].astype(output.dtype))
