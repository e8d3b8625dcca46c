"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed, shape_of
from crosschip.devices.kits.stablehlo.graph import EXACT, ChannelsLast, Graph, Value
from crosschip.ir import Operand
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

_LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}
"""The order of axes of images, filters and results, by the number of spatial axes."""
_MOST_SHIFTS = 128
_MOST_PARTS = 64

converts(DeformableConv2D)(decomposed)


@converts(Conv1D, Conv2D, Conv3D, narrow=True)
def conv(g: Graph, op: Conv) -> ChannelsLast:
    (image, filters), summed = g.factors(g.last(op.input), g.filters(op.filter))
    channels, kernel = image.shape[-1], filters.shape[:-2]
    sides = op.windows(kernel).sides(image.shape[1:-1])
    if not g.emission.splits_groups or op.group == 1:
        output = _convolve(op, image, filters, sides, summed, op.group)
    elif op.group == channels and prod(kernel) <= _MOST_SHIFTS:
        output = _sum_shifted(op, image.astype(summed), filters.astype(summed), sides)
    elif op.group <= _MOST_PARTS:
        parts = zip(jnp.split(image, op.group, -1), jnp.split(filters, op.group, -1), strict=True)
        output = jnp.concatenate(
            [_convolve(op, part, part_filters, sides, summed, 1) for part, part_filters in parts],
            -1,
        )
    else:
        output = _convolve(op, image, filters, sides, summed, op.group)
    return _add_bias(g, output, op.bias)


def _convolve(
    op: Conv, image: Value, filters: Value, sides: Sequence[int], summed: Any, groups: int
) -> Value:
    return lax.conv_general_dilated(
        image,
        filters,
        op.strides,
        pairs(sides),
        rhs_dilation=op.dilations,
        dimension_numbers=_LAYOUTS[op.spatial_rank],
        feature_group_count=groups,
        precision=EXACT,
        preferred_element_type=summed,
    )


def _sum_shifted(op: Conv, image: Value, filters: Value, sides: Sequence[int]) -> Value:
    """Sum shifted products, which for depthwise convolutions is 100 times as fast on XLA."""
    channels, out = image.shape[-1], filters.shape[-1]
    padded = jnp.pad(image, [(0, 0), *pairs(sides), (0, 0)])
    if out > channels:
        padded = jnp.repeat(padded, out // channels, -1)

    def pixels(position: Sequence[int]) -> Value:
        windows = zip(position, op.dilations, op.strides, shape_of(op)[2:], strict=True)
        parts = [
            slice(index * dilation, index * dilation + (count - 1) * stride + 1, stride)
            for index, dilation, stride, count in windows
        ]
        return padded[:, *parts]

    positions = product(*map(range, filters.shape[:-2]))
    return reduce(jnp.add, (pixels(position) * filters[*position, 0] for position in positions))


@converts(Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, narrow=True)
def conv_transpose(g: Graph, op: ConvTranspose) -> ChannelsLast | Sequence[Value]:
    if op.auto_pad is not AutoPad.NONE or op.output_shape is not None or any(op.output_padding):
        return decomposed(g, op)
    (image, filters), summed = g.factors(g.last(op.input), g[op.filter])
    channels, per_group, *kernel = filters.shape
    # The filters of the equivalent convolution: flipped, with output channels last.
    grouped = filters.reshape(op.group, channels // op.group, per_group, *kernel)
    window = tuple(range(3, grouped.ndim))
    flipped = jnp.transpose(jnp.flip(grouped, window), (*window, 1, 0, 2))
    flipped = flipped.reshape(*kernel, channels // op.group, op.group * per_group)
    extents = [d * (k - 1) for d, k in zip(op.dilations, kernel, strict=True)]
    sides = [(r - op.pads[2 * i], r - op.pads[2 * i + 1]) for i, r in enumerate(extents)]
    output = lax.conv_general_dilated(
        image,
        flipped,
        (1,) * op.spatial_rank,
        sides,
        lhs_dilation=op.strides,
        rhs_dilation=op.dilations,
        dimension_numbers=_LAYOUTS[op.spatial_rank],
        feature_group_count=op.group,
        precision=EXACT,
        preferred_element_type=summed,
    )
    return _add_bias(g, output, op.bias)


def _add_bias(g: Graph, output: Any, bias: Operand | None) -> ChannelsLast:
    return ChannelsLast(output if bias is None else output + g[bias].astype(output.dtype))


def pairs(sides: Sequence[int]) -> list[tuple[int, int]]:
    """Return the padding before and after each axis as pairs."""
    return list(zip(sides[::2], sides[1::2], strict=True))
