"""Pooling of images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crosschip.devices.kits.tflite.converters.convolution import pad
from crosschip.devices.kits.tflite.converters.table import (
    ANY_BYTES,
    WORDS,
    channels_last_type,
    converts_images,
    shape_of,
    to_channels_first,
    unary_forms,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import Operand
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D


def _limit(op: AveragePool2D | MaxPool2D) -> Refusal | None:
    if max(op.dilations) > 1:
        return Refusal("dilations", f"{list(op.dilations)}: windows have no gaps")
    return None


def _max_limit(op: MaxPool2D) -> Refusal | None:
    if op.return_indices:
        return Refusal("return_indices", "there are none")
    population = op.windows.population(shape_of(op.input)[2:], with_padding=False)
    if op.input.type.quantization is not None and not population.all():
        return Refusal("pads", "there are windows without pixels, and no integer for them")
    return _limit(op)


@converts_images(
    MaxPool2D, limit=_max_limit, nonempty=True, quantized=unary_forms(ANY_BYTES, WORDS)
)
def max_pool_2d(g: Graph, op: MaxPool2D) -> Operand:
    image = op.input
    windows = op.windows
    if _rule(windows, shape_of(image)[2:]) is None:
        pads = (0, 0, 0, 0, *windows.padding(shape_of(image)[2:]))
        if image.type.quantization is None:
            lowest: Operand | np.float32 = np.float32(-np.inf)
        else:
            dtype = image.type.element_type.dtype
            lowest = g.constant(
                np.array(np.iinfo(dtype).min, dtype), quantization=image.type.quantization
            )
        image = g.add(Pad, image, pads, value=lowest)
        windows = Windows(op.kernel_shape, op.strides, op.dilations, AutoPad.VALID, (0, 0, 0, 0))
    return _pool(g, op, "MAX_POOL_2D", image, windows)


def _average_limit(op: AveragePool2D) -> Refusal | None:
    sizes = shape_of(op.input)[2:]
    source, target = op.input.type.quantization, op.outputs[0].type.quantization
    if source is not None and target is not None and target.scale < source.scale:
        # The kernel rounds to the input's steps.
        return Refusal("output", "has smaller steps than the input", Rule.QUANTIZATION)
    if op.input.type.quantization is not None and _rule(op.windows, sizes) is None:
        return Refusal("pads", f"{list(op.pads)}: the padding counts")
    counts_padding = op.count_include_pad and any(op.windows.padding(sizes))
    if op.input.type.quantization is not None and counts_padding:
        return Refusal("count_include_pad", "the padding does not count")
    if not np.all(_population(op)):
        return Refusal("pads", "there are windows without pixels")
    return _limit(op)


@converts_images(
    AveragePool2D,
    limit=_average_limit,
    nonempty=True,
    quantized=unary_forms(ANY_BYTES, WORDS),
)
def average_pool_2d(g: Graph, op: AveragePool2D) -> Operand:
    sizes, windows = shape_of(op.input)[2:], op.windows
    counts_padding = op.count_include_pad and any(windows.padding(sizes))
    if _rule(windows, sizes) is not None and not counts_padding:
        return _pool(g, op, "AVERAGE_POOL_2D", op.input, windows)
    padded = g.add(Pad, op.input, (0, 0, 0, 0, *windows.padding(sizes)))
    valid = Windows(op.kernel_shape, op.strides, op.dilations, AutoPad.VALID, (0, 0, 0, 0))
    means = _pool(g, op, "AVERAGE_POOL_2D", padded, valid)
    factors = np.float32(np.prod(op.kernel_shape)) / _population(op).astype(np.float32)
    if np.all(factors == 1):
        return means
    from crosschip.ops.standard.arithmetic import Mul

    return g.add(Mul, means, g.constant(factors.astype(np.float32)))


def _population(op: AveragePool2D) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the number of pixels that count in each window."""
    sizes = shape_of(op.input)[2:]
    return np.asarray(op.windows.population(sizes, with_padding=op.count_include_pad), np.float64)


def _rule(windows: Windows, sizes: tuple[int, ...]) -> str | None:
    """Return the rule that gives the windows their padding, or `None`."""
    pads = windows.padding(sizes)
    if not any(pads):
        return "VALID"
    same = Windows(windows.kernel, windows.strides, windows.dilations, AutoPad.SAME, pads)
    is_same = same.static_counts(sizes) == windows.static_counts(sizes)
    return "SAME" if is_same and same.padding(sizes) == pads else None


def _pool(
    g: Graph, op: AveragePool2D | MaxPool2D, code: str, image: Operand, windows: Windows
) -> Operand:
    padded, padding = pad(g, image, windows)
    (stride_h, stride_w), (filter_height, filter_width) = op.strides, op.kernel_shape
    type_ = channels_last_type(op.outputs[0].type)
    output = g.native(
        code,
        padded,
        type=replace(type_, quantization=padded.type.quantization),
        padding=padding,
        stride_h=stride_h,
        stride_w=stride_w,
        filter_height=filter_height,
        filter_width=filter_width,
    )
    if type_.quantization != padded.type.quantization:
        output = g.native("QUANTIZE", output, type=type_)
    return to_channels_first(g, output)
