"""Pooling over a grid of cells."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool,
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
    cells,
)

converts(
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)(decomposed)


@converts(
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
)
def adaptive_average_pool(g: Graph, op: AdaptiveAveragePool) -> Value | Sequence[Value]:
    if op.is_global() or op.even_windows() is not None:
        return decomposed(g, op)
    image = g[op.input]
    for axis, count in zip(op.image_axes(), op.output_shape, strict=True):
        image = _average_cells(image, axis, count)
    return image


def _average_cells(image: Value, axis: int, count: int) -> Value:
    """Return the means of cells along an axis; a NaN affects its own cells only."""
    cell_slices = cells(image.shape[axis], count)
    sizes = np.array([cell.stop - cell.start for cell in cell_slices])
    offsets = np.arange(sizes.max(initial=0))
    starts = np.array([cell.start for cell in cell_slices])
    pixels = jnp.take(image, starts[:, None] + offsets, axis, mode="clip")
    trailing = (1,) * (image.ndim - 1 - axis)
    inside = (offsets < sizes[:, None]).reshape(count, offsets.size, *trailing)
    total = jnp.sum(jnp.where(inside, pixels, 0), axis + 1, dtype=image.dtype)
    return total / sizes.astype(image.dtype).reshape(count, *trailing)
