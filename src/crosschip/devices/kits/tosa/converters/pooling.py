"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.convolution import (
    convolve,
    fit,
    image_of,
    reaches_of,
    result_of,
)
from crosschip.devices.kits.tosa.converters.table import (
    REALS,
    STORED,
    converts,
    quantized,
    shape_of,
)
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.devices.kits.tosa.integers import BYTES, bytes_of, scales_of
from crosschip.devices.kits.tosa.rescaling import rescale
from crosschip.flatbuffer.schemas.tosa import DType, NanPropagationMode, Op
from crosschip.hal import Refusal, Rule
from crosschip.ir import Array, ElementType
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.definition.windows import Windows, static
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D, Pool

_MAX_ELEMENTS = 256
"""The maximum number of window elements that are compared one by one."""
_INTEGERS = frozenset({ElementType.INT8, ElementType.UINT8})
_QUANTIZED = {"input": BYTES, "output": BYTES}


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
    pads, kernel = windows.padding(image), np.repeat(static(windows.kernel), 2)
    return all(pad < size for pad, size in zip(pads, kernel, strict=True))


@converts(AveragePool2D, types=REALS, limit=_undivided)
def average_pool(g: Graph, op: AveragePool2D) -> Value:
    image, pads, counts = _fitted(g, op, image_of(g, g[op.input]))
    zeros = (g.zero(image.dtype), g.zero(image.dtype))
    shape = (image.shape[0], *counts, image.shape[3])
    settings = {**_window(op), "pad": pads, "acc_type": DType.FP32}
    result = g.add(Op.AVG_POOL2D, (image, *zeros), image.dtype, shape, **settings)
    return result_of(g, result)


def _window(op: Pool) -> dict[str, list[int]]:
    return {"kernel": [*op.kernel_shape], "stride": [*op.strides]}


def _fitted(g: Graph, op: Pool, image: Value) -> tuple[Value, list[int], tuple[int, ...]]:
    """Return the image that windows reach, its padding, and the number of windows."""
    windows, size = op.windows, image.shape[1:-1]
    counts = windows.static_counts(size)
    return *fit(g, image, windows.sides(size), reaches_of(windows, counts)), counts


@quantized(AveragePool2D, form=_QUANTIZED)
def average_pool_of_bytes(g: Graph, op: AveragePool2D) -> Value:
    sums, population = window_sums(g, op)
    (first,), (scale,) = scales_of(op.input), scales_of(op.outputs[0])
    result: Value | None = None
    for pixels in map(int, np.unique(population)):
        if pixels:
            mean = rescale(g, sums, [first / scale / pixels], op.outputs[0], op.fuse_code)
        else:  # NaN, which is the least integer
            least, _ = limits(op.outputs[0].type.element_type)
            mean = g.broadcast(g.number(least, sums), sums.shape)
        here = g.constant(np.asarray(population == pixels)[None], DType.BOOL)
        result = mean if result is None else g.select(here, mean, result)
    assert result is not None, "there is a window"
    return result_of(g, result)


def window_sums(g: Graph, op: AveragePool2D) -> tuple[Value, Array]:
    """Return the int32 sums of windows less zero points, channels last, and the pixels in each.

    They are convolved with ones; windows at a border have fewer pixels.
    """
    value, zero = bytes_of(g, op.input)
    image = image_of(g, value)
    size = image.shape[1:-1]
    population = op.windows.population(size, with_padding=op.count_include_pad)[0, 0, ..., None]
    image, pads, counts = _fitted(g, op, image)
    ones = np.ones((image.shape[3], *op.kernel_shape, 1), np.int8)
    sums = convolve(
        g,
        image,
        g.constant(ones, DType.INT8),
        g.zero(DType.INT32),
        image.shape[3],
        (image.shape[0], *counts),
        {"pad": pads, "stride": [*op.strides], "dilation": [*op.dilations]},
        (zero, g.zero(DType.INT8)),
    )
    return sums, np.asarray(population)


def _few_elements(op: MaxPool2D) -> Refusal | None:
    if _is_direct(op) or prod(op.kernel_shape) <= _MAX_ELEMENTS:
        return None
    detail = f"has more than {_MAX_ELEMENTS} elements to compare one by one"
    return Refusal("kernel_shape", detail, Rule.VALUE)


def _is_direct(op: MaxPool2D, size: Sequence[int] | None = None) -> bool:
    """Return whether TOSA has an operation's windows; `size` is that of the image."""
    undilated = all(dilation == 1 for dilation in op.dilations)
    size = shape_of(op.input)[2:] if size is None else size
    return not op.return_indices and undilated and _pads_fit(op.windows, size)


def _moves_steps(op: MaxPool2D) -> bool:
    return op.input.type.quantization == op.outputs[0].type.quantization


@quantized(MaxPool2D, form=_QUANTIZED, limit=_moves_steps)
def max_pool_of_bytes(g: Graph, op: MaxPool2D) -> Value:
    result = _max_pool(g, op)[0]
    if op.fuse_code is Fuse.NONE:
        return result
    return rescale_steps(g, result, op)


@converts(MaxPool2D, types=STORED, limit=_few_elements, narrow=True)
def max_pool(g: Graph, op: MaxPool2D) -> list[Value]:
    return _max_pool(g, op)


def _max_pool(g: Graph, op: MaxPool2D) -> list[Value]:
    value = g[op.input]
    if op.input.type.element_type in _INTEGERS:
        value, _ = bytes_of(g, op.input)
    image = image_of(g, g.widen(value) if value.dtype is not DType.INT8 else value)
    size = image.shape[1:-1]
    image, pads, counts = _fitted(g, op, image)
    shape = (image.shape[0], *counts, image.shape[3])
    if _is_direct(op, size):
        mode = NanPropagationMode.PROPAGATE
        settings = {**_window(op), "pad": pads, "nan_mode": mode}
        maximum = g.add(Op.MAX_POOL2D, (image,), image.dtype, shape, **settings)
        return [_unshifted(g, op, result_of(g, maximum))]
    image = g.widen(image)
    least = -np.inf if image.dtype is DType.FP32 else -128
    pixels = _window_elements(g, op, image, pads, counts, g.number(least, image))
    maximum = reduce(lambda one, other: g.binary(Op.MAXIMUM, one, other), pixels)
    results = [_unshifted(g, op, result_of(g, maximum))]
    if op.return_indices:
        offsets = np.arange(prod(size), dtype=np.int32).reshape(1, *size, 1)
        offsets = offsets[:, : image.shape[1], : image.shape[2]]
        numbers = g.constant(offsets, DType.INT32)
        indices = _window_elements(g, op, numbers, pads, counts, g.number(-1, numbers))
        best = g.number(-1, numbers)
        for pixel, index in reversed(list(zip(pixels, indices, strict=True))):
            inside = g.greater_equal(index, g.number(0, index))
            chosen = g.binary(Op.LOGICAL_AND, g.equal(pixel, maximum), inside)
            best = g.select(chosen, index, best)
        results.append(result_of(g, g.broadcast(best, shape)))
    return results


def _unshifted(g: Graph, op: MaxPool2D, maximum: Value) -> Value:
    """Return maxima of uint8, which were moved to the range of int8."""
    if op.input.type.element_type is not ElementType.UINT8:
        return maximum
    wide = g.cast(maximum, DType.INT32)
    return g.sum(wide, g.number(128, wide))


def rescale_steps(g: Graph, value: Value, op: MaxPool2D) -> Value:
    """Apply a fused activation to integers that keep their quantization."""
    quantization = op.outputs[0].type.quantization
    assert quantization is not None, "the form is checked"
    wide = g.cast(value, DType.INT32)
    steps = g.difference(wide, g.number(quantization.zero_point[0], wide))
    return rescale(g, steps, [Fraction(1)], op.outputs[0], op.fuse_code)


def _window_elements(
    g: Graph,
    op: MaxPool2D,
    image: Value,
    pads: Sequence[int],
    counts: Sequence[int],
    fill: Value,
) -> list[Value]:
    """Return, for each element of a window, the pixels under it."""
    sides = [(0, 0), (pads[0], pads[1]), (pads[2], pads[3]), (0, 0)]
    padded = g.pad(image, sides, g.reshape(fill, (1,)))
    elements = []
    for position in product(*map(range, op.kernel_shape)):
        part = padded
        for axis, (index, dilation, stride, count) in enumerate(
            zip(position, op.dilations, op.strides, counts, strict=True), 1
        ):
            first = index * dilation
            part = g.part(part, axis, first, first + (count - 1) * stride + 1)
            part = g.strided(part, axis, stride)
        elements.append(part)
    return elements
