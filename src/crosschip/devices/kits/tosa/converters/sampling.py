"""Resampling of images at computed coordinates."""

from __future__ import annotations

from functools import reduce
from itertools import product

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.convolution import channels_last
from crosschip.devices.kits.tosa.converters.table import STORED, converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.hal import Refusal, Rule
from crosschip.ops.standard.sampling import RoiAlign, RoiMode

_Corner = tuple[Value, Value]
"""The index of a pixel for each sample on an axis, [R, samples], and its weight."""


def _known_samples(op: RoiAlign) -> Refusal | None:
    if op.sampling_ratio < 1:
        detail = "the number of samples depends on data, and TOSA's shapes are constant"
        return Refusal("sampling_ratio", detail, Rule.VALUE)
    return None


@converts(RoiAlign, types=STORED, limit=_known_samples)
def roi_align(g: Graph, op: RoiAlign) -> Value:
    image, rois = channels_last(g, g[op.input]), g[op.rois]
    batch, height, width, channels = image.shape
    scaled = g.product(rois, g.number(op.spatial_scale, rois))
    if op.aligned:
        scaled = g.difference(scaled, g.number(0.5, scaled))
    rows = _corners(g, op, scaled, 1, op.output_height, height)
    columns = _corners(g, op, scaled, 0, op.output_width, width)
    count, ratio = rois.shape[0], op.sampling_ratio
    images = g.reshape(g[op.batch_indices], (count, 1, 1))
    first = g.product(images, g.number(height * width, images))
    pixels = g.reshape(image, (1, batch * height * width, channels))
    down, across = op.output_height * ratio, op.output_width * ratio
    parts = []
    for (row, row_weight), (column, column_weight) in product(rows, columns):
        start = g.product(row, g.number(width, row))
        offsets = g.sum(
            g.sum(first, g.reshape(start, (count, down, 1))), g.reshape(column, (count, 1, across))
        )
        entries = g.gather_rows(pixels, g.reshape(offsets, (1, count * down * across)))
        weights = g.product(
            g.reshape(row_weight, (count, down, 1, 1)),
            g.reshape(column_weight, (count, 1, across, 1)),
        )
        parts.append(g.product(g.reshape(entries, (count, down, across, channels)), weights))
    is_mean = op.mode is RoiMode.AVERAGE
    combine, over = (Op.ADD, Op.REDUCE_SUM) if is_mean else (Op.MAXIMUM, Op.REDUCE_MAX)
    samples = reduce(lambda one, other: g.binary(combine, one, other), parts)
    shape = (count, op.output_height, ratio, op.output_width, ratio, channels)
    cells = g.reduce(over, g.reshape(samples, shape), [2, 4])
    if is_mean:
        cells = g.product(cells, g.number(1 / ratio**2, cells))
    cells = g.reshape(cells, (count, op.output_height, op.output_width, channels))
    return g.transpose(cells, (0, 3, 1, 2))


def _corners(
    g: Graph, op: RoiAlign, rois: Value, axis: int, count: int, size: int
) -> list[_Corner]:
    """Return the two pixels around each sample on an axis: 0 for x, 1 for y."""
    start, end = (g.part(rois, 1, index, index + 1) for index in (axis, axis + 2))
    extent = g.difference(end, start)
    if not op.aligned:
        extent = g.binary(Op.MAXIMUM, extent, g.number(1, extent))
    steps = (np.arange(op.sampling_ratio) + 0.5) / op.sampling_ratio
    positions = (np.arange(count)[:, None] + steps).astype(np.float32).reshape(1, -1)
    cell = g.product(extent, g.number(1 / count, extent))
    coordinates = g.sum(start, g.product(g.constant(positions, DType.FP32), cell))
    inside = g.binary(
        Op.LOGICAL_AND,
        g.greater_equal(coordinates, g.number(-1, coordinates)),
        g.greater_equal(g.number(size, coordinates), coordinates),
    )
    clamped = g.clamp(coordinates, 0, size - 1)
    floor = g.unary(Op.FLOOR, clamped)
    low = g.cast(floor, DType.INT32)
    high = g.binary(Op.MINIMUM, g.sum(low, g.number(1, low)), g.number(size - 1, low))
    part, zero = g.difference(clamped, floor), g.number(0, clamped)
    rest = g.difference(g.number(1, part), part)
    return [(low, g.select(inside, rest, zero)), (high, g.select(inside, part, zero))]
