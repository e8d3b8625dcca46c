"""Convolutions."""

from __future__ import annotations

from operator import ge

from crosschip.devices.kits.limits import no_output_shape
from crosschip.devices.kits.onnx.converters.table import NARROW_FLOATS, converts
from crosschip.devices.kits.onnx.converters.windows import dilation_limit, window_attributes
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
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


def _deformable_limit(op: DeformableConv2D) -> Refusal | None:
    known = op.filter.type.static_shape is not None
    return None if known else Refusal("filter", "its shape must be known", Rule.SHAPE)


@converts(DeformableConv2D, types={ElementType.FLOAT32}, limit=_deformable_limit, nonempty=True)
def deformable_conv_2d(g: Graph, op: DeformableConv2D) -> str:
    top, bottom, left, right = op.pads
    inputs = (op.input, op.filter, op.offset, op.bias, op.mask)
    return g.add(
        "DeformConv",
        *(g[operand] if operand else "" for operand in inputs),
        pads=[top, left, bottom, right],
        strides=op.strides,
        dilations=op.dilations,
        group=op.group,
        offset_group=op.deformable_group,
    )


def _may_skip_pixels(op: Conv) -> bool:
    """Return whether gaps between windows may make ONNX Runtime's `SAME` padding negative."""
    kernel = (op.filter.type.shape or (1,) * (2 + op.spatial_rank))[2:]
    sizes = (size if isinstance(size, int) else 1 for size in kernel)
    skips_pixels = any(stride - size > 1 for stride, size in zip(op.strides, sizes, strict=True))
    return op.auto_pad.keeps_size and skips_pixels


def _conv_limit(op: Conv) -> Refusal | None:
    if _may_skip_pixels(op) and None in (op.input.type.static_shape, op.filter.type.static_shape):
        return Refusal("auto_pad", f"{op.auto_pad.name} with windows that leave pixels out")
    return dilation_limit(op)


@converts(Conv1D, Conv2D, Conv3D, types=NARROW_FLOATS, limit=_conv_limit, nonempty=True)
def conv(g: Graph, op: Conv) -> str:
    inputs = [g[operand] for operand in (op.input, op.filter, op.bias) if operand]
    window = window_attributes(op)
    image, kernel = op.input.type.static_shape, op.filter.type.static_shape
    if _may_skip_pixels(op) and image is not None and kernel is not None:
        pads = op.windows(kernel[2:]).padding(image[2:])
        window |= {"auto_pad": "NOTSET", "pads": [*pads[::2], *pads[1::2]]}
    return g.add("Conv", *inputs, group=op.group, dilations=op.dilations, **window)


def _conv_transpose_limit(op: ConvTranspose) -> Refusal | None:
    if any(map(ge, op.output_padding, op.strides)):
        return Refusal(
            "output_padding", f"{list(op.output_padding)}, must be less than the strides"
        )
    return no_output_shape(op)


@converts(
    Conv1DTranspose,
    Conv2DTranspose,
    Conv3DTranspose,
    types=NARROW_FLOATS,
    limit=_conv_transpose_limit,
    nonempty=True,
)
def conv_transpose(g: Graph, op: ConvTranspose) -> str:
    inputs = [g[operand] for operand in (op.input, op.filter, op.bias) if operand]
    return g.add(
        "ConvTranspose",
        *inputs,
        group=op.group,
        dilations=op.dilations,
        output_padding=op.output_padding,
        **window_attributes(op),
    )
