"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from crosschip.devices.xla.converters.table import converts, decomposed, shape_of
from crosschip.devices.xla.graph import EXACT, Graph, Value
from crosschip.ir import Operand
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, DeformableConv2D

_LAYOUT = ("NCHW", "OIHW", "NCHW")

converts(DeformableConv2D)(decomposed)


@converts(Conv2D, narrow=True)
def conv_2d(g: Graph, op: Conv2D) -> Value:
    (image, filters), summed = g.factors(g[op.input], g[op.filter])
    sides = op.windows(filters.shape[2:]).sides(image.shape[2:])
    output = lax.conv_general_dilated(
        image,
        filters,
        op.strides,
        [sides[:2], sides[2:]],
        rhs_dilation=op.dilations,
        dimension_numbers=_LAYOUT,
        feature_group_count=op.group,
        precision=EXACT,
        preferred_element_type=summed,
    )
    return _biased(g, output, op.bias)


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
    assert output.shape == shape_of(op)
    return _biased(g, output, op.bias)


def _biased(g: Graph, output: Any, bias: Operand | None) -> Value:
    return output if bias is None else output + g[bias].astype(output.dtype).reshape(-1, 1, 1)
