"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax.numpy as jnp
from jax import lax

from crosschip.devices.xla.converters.table import converts, decomposed, shape_of
from crosschip.devices.xla.graph import EXACT, Graph, Value
from crosschip.ir import Operand
from crosschip.ops.definition.windows import AutoPad, sliding_windows
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D

_LAYOUT = ("NCHW", "OIHW", "NCHW")
_MOST_SHIFTS = 128
_MOST_PARTS = 64

converts(DeformableConv2D)(decomposed)


@converts(Conv2D, narrow=True)
def conv_2d(g: Graph, op: Conv2D) -> Value:
    (image, filters), summed = g.factors(g[op.input], g[op.filter])
    sides = op.windows(filters.shape[2:]).sides(image.shape[2:])
    if not g.on_processor or op.group == 1:
        output = _convolved(op, image, filters, sides, summed, op.group)
    elif op.group == image.shape[1] and filters[0, 0].size <= _MOST_SHIFTS:
        output = _shifted(op, image.astype(summed), filters.astype(summed), sides)
    elif op.group <= _MOST_PARTS:
        pairs = zip(jnp.split(image, op.group, 1), jnp.split(filters, op.group), strict=True)
        parts = [_convolved(op, part, own, sides, summed, 1) for part, own in pairs]
        output = jnp.concatenate(parts, 1)
    else:
        output = _convolved(op, image, filters, sides, summed, op.group)
    return _biased(g, output, op.bias)


def _convolved(
    op: Conv2D, image: Value, filters: Value, sides: Sequence[int], summed: Any, groups: int
) -> Value:
    """XLA's own convolution."""
    if groups == 1 and filters.shape[2:] == (1, 1) and op.strides == (1, 1) and not any(sides):
        # A product of matrices, which needs no other layout.
        pixels = image.reshape(*image.shape[:2], -1)
        made = jnp.matmul(
            filters[:, :, 0, 0], pixels, precision=EXACT, preferred_element_type=summed
        )
        return made.reshape(image.shape[0], -1, *image.shape[2:])
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
    channels, out = image.shape[1], filters.shape[0]
    padded = jnp.pad(image, [(0, 0), (0, 0), sides[:2], sides[2:]])
    if out > channels:
        padded = jnp.repeat(padded, out // channels, 1)
    kernel = filters.shape[2:]
    parts = sliding_windows(padded, kernel, op.strides, op.dilations, shape_of(op)[2:])
    return reduce(
        jnp.add, (pixels * filters[:, 0, i, j].reshape(-1, 1, 1) for (i, j), pixels in parts)
    )


@converts(Conv2DTranspose, narrow=True)
def conv_2d_transpose(g: Graph, op: Conv2DTranspose) -> Value | Sequence[Value]:
    if op.auto_pad is not AutoPad.NONE or op.output_shape is not None or any(op.output_padding):
        return decomposed(g, op)
    (image, filters), summed = g.factors(g[op.input], g[op.filter])
    into, per_group, *kernel = filters.shape
    # A group's filters, as those of a convolution: output channels first, and turned around.
    grouped = filters.reshape(op.group, into // op.group, per_group, *kernel)
    turned = jnp.flip(grouped.swapaxes(1, 2), (3, 4))
    turned = turned.reshape(op.group * per_group, into // op.group, *kernel)
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


def _biased(g: Graph, output: Any, bias: Operand | None) -> Value:
    return output if bias is None else output + g[bias].astype(output.dtype).reshape(-1, 1, 1)
