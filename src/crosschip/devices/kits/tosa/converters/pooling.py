"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.convolution import (
    channels_first,
    channels_last,
    fit,
)
from crosschip.devices.kits.tosa.converters.table import REALS, converts, shape_of
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, NanPropagationMode, Op
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.definition.windows import Windows, extent, static
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D, Pool

_MAX_ELEMENTS = 256
"""The maximum number of window elements that are compared one by one."""


def _reaches(windows: Windows, counts: Sequence[int]) -> list[int]:
    spans = map(extent, static(windows.kernel), windows.dilations)
    return [
        (count - 1) * stride + span
        for count, stride, span in zip(counts, windows.strides, spans, strict=True)
    ]


def _undivided(op: AveragePool2D) -> Refusal | None:
    """Refuse windows that TOSA does not have; a convolution replaces them."""
    windows, image = op.windows, shape_of(op.input)[2:]
    if any(dilation > 1 for dilation in op.dilations):
        return Refusal("dilations", "TOSA's windows have no dilation", Rule.VALUE)
    if op.count_include_pad and any(windows.padding(image)):
        return Refusal("count_include_pad", "TOSA does not count padding", Rule.VALUE)
    if not _pads_fit(windows, image) or not windows.population(image, with_padding=False).all():
        return Refusal("pads", "a window has no pixel", Rule.VALUE)
    return None


def _pads_fit(windows: Windows, image: Sequence[int]) -> bool:
    """Return whether the padding is less than a window on each side."""
    pads = windows.padding(image)
    return all(pad < size for pad, size in zip(pads, np.repeat(windows.kernel, 2), strict=True))


@converts(AveragePool2D, types=REALS, limit=_undivided)
def average_pool(g: Graph, op: AveragePool2D) -> Value:
    image, pads = _image(g, op)
    zeros = (g.zero(image.dtype), g.zero(image.dtype))
    counts = shape_of(op)[2:]
    result = g.add(
        Op.AVG_POOL2D,
        (image, *zeros),
        image.dtype,
        (image.shape[0], *counts, image.shape[3]),
        kernel=[*op.kernel_shape],
        stride=[*op.strides],
        pad=pads,
        acc_type=DType.FP32,
    )
    return channels_first(g, result)


def _image(g: Graph, op: Pool) -> tuple[Value, list[int]]:
    windows, image = op.windows, channels_last(g, g[op.input])
    sides = windows.sides(shape_of(op.input)[2:])
    return fit(g, image, sides, _reaches(windows, shape_of(op)[2:]))


def _few_elements(op: MaxPool2D) -> Refusal | None:
    if _is_direct(op) or prod(op.kernel_shape) <= _MAX_ELEMENTS:
        return None
    detail = f"has more than {_MAX_ELEMENTS} elements to compare one by one"
    return Refusal("kernel_shape", detail, Rule.VALUE)


def _is_direct(op: MaxPool2D) -> bool:
    windows = op.windows
    return (
        not op.return_indices
        and all(dilation == 1 for dilation in op.dilations)
        and op.input.type.element_type is not ElementType.UINT8
        and _pads_fit(windows, shape_of(op.input)[2:])
    )


@converts(MaxPool2D, limit=_few_elements)
def max_pool(g: Graph, op: MaxPool2D) -> Value | list[Value]:
    image, pads = _image(g, op)
    counts = shape_of(op)[2:]
    shape = (image.shape[0], *counts, image.shape[3])
    if _is_direct(op) and image.dtype is DType.FP32:
        result = g.add(
            Op.MAX_POOL2D,
            (image,),
            image.dtype,
            shape,
            kernel=[*op.kernel_shape],
            stride=[*op.strides],
            pad=pads,
            nan_mode=NanPropagationMode.PROPAGATE,
        )
        return channels_first(g, result)
    least = _least(op.input.type.element_type)
    pixels = _window_elements(g, op, image, pads, g.number(least, image))
    maximum = reduce(lambda one, other: g.binary(Op.MAXIMUM, one, other), pixels)
    if not op.return_indices:
        return channels_first(g, maximum)
    height, width = shape_of(op.input)[2:]
    offsets = np.arange(height * width, dtype=np.int32).reshape(1, height, width, 1)
    offsets = offsets[:, : image.shape[1], : image.shape[2]]
    numbers = g.constant(offsets, DType.INT32)
    indices = _window_elements(g, op, numbers, pads, g.number(-1, numbers))
    best = g.number(-1, numbers)
    for pixel, index in reversed(list(zip(pixels, indices, strict=True))):
        inside = g.greater_equal(index, g.number(0, index))
        chosen = g.binary(Op.LOGICAL_AND, g.equal(pixel, maximum), inside)
        best = g.select(chosen, index, best)
    return [channels_first(g, maximum), channels_first(g, g.broadcast(best, shape))]


def _least(element_type: ElementType) -> float:
    if element_type in REALS:
        return -np.inf
    return 0 if element_type is ElementType.UINT8 else int(np.iinfo(element_type.dtype).min)


def _window_elements(
    g: Graph, op: MaxPool2D, image: Value, pads: Sequence[int], fill: Value
) -> list[Value]:
    """Return, for each element of a window, the pixels under it."""
    sides = [(0, 0), (pads[0], pads[1]), (pads[2], pads[3]), (0, 0)]
    padded = g.pad(image, sides, g.reshape(fill, (1,)))
    elements = []
    for position in product(*map(range, op.kernel_shape)):
        part = padded
        for axis, (index, dilation, stride, count) in enumerate(
            zip(position, op.dilations, op.strides, shape_of(op)[2:], strict=True), 1
        ):
            first = index * dilation
            part = g.part(part, axis, first, first + (count - 1) * stride + 1)
            part = g.every(part, axis, stride)
        elements.append(part)
    return elements
