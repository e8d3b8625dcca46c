"""Sampling of images between pixels."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed, shape_of
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode

_MOST_SAMPLES = 2**20

converts(GridSample)(decomposed)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The rows (or columns) of the samples of regions.

    Attributes:
        start: the first row of each region, [R].
        extent: the height of each region, [R].
        count: the number of cells of a region.
        samples: the number of samples of each cell, [R].
        size: the number of rows of an image.
    """

    start: Value
    extent: Value
    count: int
    samples: Value
    size: int

    def weighted(self, sample: Any) -> list[tuple[Value, Value]]:
        """Return two pixels and their weights for one sample of each cell, each [R, count]."""
        step = (sample + 0.5) / jnp.maximum(self.samples, 1).astype(self.start.dtype)
        cells = jnp.arange(self.count, dtype=self.start.dtype) + step[:, None]
        coordinates = self.start[:, None] + cells * (self.extent / self.count)[:, None]
        clamped = jnp.clip(coordinates, 0, self.size - 1)
        low = jnp.floor(clamped)
        fraction = clamped - low
        inside = (coordinates >= -1) & (coordinates <= self.size)
        first = low.astype(jnp.int64)
        second = jnp.minimum(first + 1, self.size - 1)
        return [(first, (1 - fraction) * inside), (second, fraction * inside)]


@converts(RoiAlign)
def roi_align(g: Graph, op: RoiAlign) -> Value:
    images, rois, batch = g[op.input], g[op.rois], g[op.batch_indices]
    holds = (batch >= 0) & (batch < images.shape[0])
    g.require(op, f"batch_indices: one is not in [0, {images.shape[0]})", holds)
    if 0 in images.shape or 0 in rois.shape:
        return jnp.zeros(shape_of(op), images.dtype)
    rows, columns = _axes(op, rois, images.shape[2:])
    each = rows.samples * columns.samples
    across = jnp.max(columns.samples)
    most = jnp.max(rows.samples) * across
    few = most <= _MOST_SAMPLES
    g.require(op, f"rois: their cells have more than {_MOST_SAMPLES} samples", few)
    greatest = op.mode is RoiMode.MAX

    def add(index: Any, total: Value) -> Value:
        row, column = index // across, index % across
        pixels = (
            images[batch[:, None, None], :, y[:, :, None], x[:, None, :]]
            * (y_weight[:, :, None] * x_weight[:, None, :])[..., None]
            for (y, y_weight), (x, x_weight) in product(
                rows.weighted(row), columns.weighted(column)
            )
        )
        value = reduce(jnp.maximum if greatest else jnp.add, pixels)
        counts = ((row < rows.samples) & (column < columns.samples))[:, None, None, None]
        other = jnp.maximum(total, value) if greatest else total + value
        return jnp.where(counts, other, total)

    shape = (rois.shape[0], op.output_height, op.output_width, images.shape[1])
    first = jnp.full(shape, -jnp.inf if greatest else 0, jnp.result_type(images, rows.start))
    total = lax.fori_loop(0, jnp.where(few, most, 0), add, first)
    has_samples = jnp.where(each > 0, 1, 0)[:, None, None, None]
    share = 1 if greatest else jnp.maximum(each, 1)[:, None, None, None].astype(total.dtype)
    return jnp.transpose(jnp.where(has_samples, total / share, 0), (0, 3, 1, 2))


def _axes(op: RoiAlign, rois: Value, image: tuple[int, int]) -> list[_Axis]:
    """Return rows and columns; a region with a coordinate that is not finite becomes one pixel."""
    scaled = rois * jnp.asarray(op.spatial_scale, rois.dtype) - 0.5 * op.aligned
    extents = scaled[:, 2:] - scaled[:, :2]
    is_finite = jnp.isfinite(jnp.concatenate([scaled, extents], 1)).all(1, keepdims=True)
    scaled, extents = jnp.where(is_finite, scaled, 0), jnp.where(is_finite, extents, 0)
    if not op.aligned:
        extents = jnp.maximum(extents, 1)
    axes = []
    for column, count, size in zip((1, 0), (op.output_height, op.output_width), image, strict=True):
        extent = extents[:, column]
        samples = jnp.full(extent.shape, op.sampling_ratio, jnp.int64)
        if op.sampling_ratio <= 0:
            # Any count above the limit is refused; this one is in the range of integers.
            sample_counts = jnp.clip(jnp.ceil(extent / count), 0, 2 * _MOST_SAMPLES)
            samples = sample_counts.astype(jnp.int64)
        axes.append(_Axis(scaled[:, column], extent, count, samples, size))
    return axes
