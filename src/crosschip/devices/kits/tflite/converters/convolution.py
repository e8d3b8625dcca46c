"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.devices.kits.tflite.converters.table import (
    ACTIVATION,
    UNSIGNED,
    WORDS,
    channels_last_type,
    converts_images,
    shape_of,
    to_channels_first,
    to_channels_last,
    with_shape,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.hal.converters import Form, Scheme
from crosschip.ir import Array, ElementType, Operand, Quantization, constant
from crosschip.mapping.channels_last import transpose
from crosschip.ops.definition.windows import AutoPad, Pads, Windows
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.padding import Pad

_BIAS = Scheme(frozenset({ElementType.INT32}), symmetric=True, axis=0)
"""The scheme of a bias, in steps of the products."""


def weighted_forms(slot: str, axis: int) -> Sequence[Form]:
    """Return the quantized forms of a layer whose weights have output channels on an axis."""
    weights = Scheme(frozenset({ElementType.INT8}), symmetric=True, axis=axis)
    return [
        {"input": scheme, slot: weight, "bias": _BIAS, "output": scheme}
        for scheme, weight in ((ACTIVATION, weights), (UNSIGNED, UNSIGNED), (WORDS, weights))
    ]


def _conv_limit(op: Conv2D) -> Refusal | None:
    channels, (out, per_group, *_) = shape_of(op.input)[1], shape_of(op.filter)
    if 0 in (channels, out, per_group):
        return Refusal("filter", "has no elements", Rule.SHAPE)
    if op.filter.type.quantization is not None and not op.filter.is_constant:
        return Refusal("filter", "is quantized and computed at run time", Rule.COMPUTED)
    return None


@converts_images(
    Conv2D,
    limit=_conv_limit,
    nonempty=True,
    quantized=weighted_forms("filter", 0),
)
def conv_2d(g: Graph, op: Conv2D) -> Operand:
    image, kernel = shape_of(op.input), shape_of(op.filter)
    windows = op.windows(kernel[2:])
    padded, padding = pad(g, op.input, windows)
    (stride_h, stride_w), (dilation_h, dilation_w) = op.strides, op.dilations
    options = {
        "padding": padding,
        "stride_h": stride_h,
        "stride_w": stride_w,
        "dilation_h_factor": dilation_h,
        "dilation_w_factor": dilation_w,
    }
    bias = bias_of(g, op, kernel[0])
    type_ = channels_last_type(op.outputs[0].type)
    if op.group == image[1] and op.group > 1:
        filter = transpose(g, op.filter, (1, 2, 3, 0))
        return to_channels_first(
            g,
            g.native(
                "DEPTHWISE_CONV_2D",
                padded,
                filter,
                bias,
                type=type_,
                depth_multiplier=kernel[0] // op.group,
                **options,
            ),
        )
    filter = transpose(g, op.filter, (0, 2, 3, 1))
    return to_channels_first(g, g.native("CONV_2D", padded, filter, bias, type=type_, **options))


def bias_of(g: Graph, op: Conv2D | Conv2DTranspose, channels: int) -> Operand:
    """Return the bias of a convolution; zeros if it has none."""
    if op.bias is not None:
        return accumulated(g, op.bias, op.input)
    unit, scales = op.input.type.quantization, op.filter.type.quantization
    if unit is None or scales is None:
        return g.constant(np.zeros(channels, op.input.type.element_type.dtype))
    products = np.float32(unit.scale[0]) * np.array(scales.scale, np.float32)
    axis = None if scales.axis is None else 0
    bias = g.constant(
        np.zeros(channels, np.int32), quantization=Quantization(tuple(products.tolist()), axis=axis)
    )
    return accumulated(g, bias, op.input)


def accumulated(g: Graph, bias: Operand, input: Operand) -> Operand:
    """Return a bias in the type of sums of products, which is int64 for an input of int16."""
    if input.type.element_type is not ElementType.INT16 or bias.value is None:
        return bias
    return g.constant(bias.value.astype(np.int64), quantization=bias.type.quantization)


def pad(g: Graph, image: Operand, windows: Windows) -> tuple[Operand, str]:
    """Return an image, with channels last, and the rule by which the operator pads it.

    Padding that no rule of TensorFlow Lite gives is added to the image.
    """
    sizes = shape_of(image)[2:]
    pads = windows.padding(sizes)
    if not any(pads):
        return to_channels_last(g, image), "VALID"
    same = Windows(windows.kernel, windows.strides, windows.dilations, AutoPad.SAME, pads)
    counts = windows.static_counts(sizes)
    if same.static_counts(sizes) == counts and same.padding(sizes) == pads:
        return to_channels_last(g, image), "SAME"
    return to_channels_last(g, g.add(Pad, image, (0, 0, 0, 0, *pads))), "VALID"


def _transpose_limit(op: Conv2DTranspose) -> Refusal | None:
    if op.auto_pad is not AutoPad.NONE or op.output_shape is not None or any(op.output_padding):
        return Refusal("auto_pad", "is resolved by the decomposition")
    if (op.group > 1 or max(op.dilations) > 1) and not op.filter.is_constant:
        return Refusal("filter", "of groups or with dilations, is computed at run time")
    if op.filter.type.quantization is not None and (op.group > 1 or not op.filter.is_constant):
        return Refusal("filter", "is quantized, of groups", Rule.QUANTIZATION)
    return None


@converts_images(
    Conv2DTranspose,
    limit=_transpose_limit,
    nonempty=True,
    quantized=weighted_forms("filter", 1),
)
def conv_2d_transpose(g: Graph, op: Conv2DTranspose) -> Operand:
    filter = op.filter
    if op.group > 1 or max(op.dilations) > 1:
        assert filter.value is not None, "the limit requires it"
        filter = constant(_dense(filter.value, op), filter.name, filter.type.quantization)
    batch, _, *image = shape_of(op.input)
    out, kernel = shape_of(filter)[1], shape_of(filter)[2:]
    sizes = shape_of(op.outputs[0])[2:]
    full = [(n - 1) * s + k for n, s, k in zip(image, op.strides, kernel, strict=True)]
    is_same = op.pads == _same_crop(image, sizes, op.strides, kernel)
    written = sizes if is_same else full
    type_ = channels_last_type(op.outputs[0].type)
    stride_h, stride_w = op.strides
    output = g.native(
        "TRANSPOSE_CONV",
        g.int32((batch, *written, out)),
        transpose(g, filter, (1, 2, 3, 0)),
        to_channels_last(g, op.input),
        bias_of(g, op, out),
        type=with_shape(type_, (batch, *written, out)),
        padding="SAME" if is_same and any(op.pads) else "VALID",
        stride_h=stride_h,
        stride_w=stride_w,
    )
    if written != sizes:
        begin = (0, *op.pads[::2], 0)
        output = g.native(
            "SLICE", output, g.int32(begin), g.int32((batch, *sizes, out)), type=type_
        )
    return to_channels_first(g, output)


def _same_crop(
    image: list[int], sizes: tuple[int, ...], strides: tuple[int, ...], kernel: tuple[int, ...]
) -> Pads | None:
    """Return the pixels that `SAME` crops before and after each axis; `None` if sizes differ."""
    crop = []
    for size, result, stride, span in zip(image, sizes, strides, kernel, strict=True):
        if -(-result // stride) != size:
            return None
        total = max(0, (size - 1) * stride + span - result)
        crop += [total // 2, total - total // 2]
    return tuple(crop)


def _dense(filter: Array, op: Conv2DTranspose) -> Array:
    """Return the filter of the same transposed convolution without groups and dilations."""
    into, per_group, *kernel = filter.shape
    (dilation_h, dilation_w), group = op.dilations, op.group
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, op.dilations, strict=True)]
    dense = np.zeros((into, per_group * group, *spans), filter.dtype)
    for index in range(group):
        rows = slice(index * into // group, (index + 1) * into // group)
        columns = slice(index * per_group, (index + 1) * per_group)
        dense[rows, columns, ::dilation_h, ::dilation_w] = filter[rows]
    return dense
