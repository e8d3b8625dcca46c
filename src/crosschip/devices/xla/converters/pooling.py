"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from crosschip.devices.xla.converters.convolution import pairs
from crosschip.devices.xla.converters.table import converts, decomposed
from crosschip.devices.xla.graph import ChannelsLast, Graph, Value
from crosschip.ops.definition.windows import Windows, sliding_windows, static
from crosschip.ops.standard import adaptive_pooling, pooling

converts(
    adaptive_pooling.AdaptiveMaxPool1D,
    adaptive_pooling.AdaptiveMaxPool2D,
    adaptive_pooling.AdaptiveMaxPool3D,
)(decomposed)


@converts(
    adaptive_pooling.AdaptiveAveragePool1D,
    adaptive_pooling.AdaptiveAveragePool2D,
    adaptive_pooling.AdaptiveAveragePool3D,
)
def adaptive_average_pool(
    g: Graph, op: adaptive_pooling.AdaptiveAveragePool
) -> Value | Sequence[Value]:
    if op.is_global() or op.even_windows() is not None:
        return decomposed(g, op)
    image = g[op.input]
    for axis, count in zip(op.image_axes(), op.output_shape, strict=True):
        image = _averaged(image, axis, count)
    return image


def _averaged(image: Value, axis: int, count: int) -> Value:
    """The means of cells along an axis; what is NaN in one is so in no other."""
    cells = adaptive_pooling.cells(image.shape[axis], count)
    sizes = np.array([cell.stop - cell.start for cell in cells])
    places = np.arange(sizes.max(initial=0))
    starts = np.array([cell.start for cell in cells])
    pixels = jnp.take(image, starts[:, None] + places, axis, mode="clip")
    trailing = (1,) * (image.ndim - 1 - axis)
    inside = (places < sizes[:, None]).reshape(count, places.size, *trailing)
    total = jnp.sum(jnp.where(inside, pixels, 0), axis + 1, dtype=image.dtype)
    return total / sizes.astype(image.dtype).reshape(count, *trailing)


@converts(pooling.AveragePool1D, pooling.AveragePool2D, pooling.AveragePool3D)
def average_pool(g: Graph, op: pooling.AveragePool) -> ChannelsLast:
    image, windows = g.last(op.input), op.windows
    total = _reduced(image, windows, lax.add, 0)
    population = windows.population(image.shape[1:-1], with_padding=op.count_include_pad)
    return ChannelsLast(total / population[0, 0, ..., None].astype(image.dtype))


@converts(pooling.MaxPool1D, pooling.MaxPool2D, pooling.MaxPool3D, narrow=True)
def max_pool(g: Graph, op: pooling.MaxPool) -> ChannelsLast | Sequence[Value]:
    windows, dtype = op.windows, op.outputs[0].type.element_type.dtype
    real = jnp.issubdtype(dtype, jnp.floating)
    least = -np.inf if real else int(jnp.iinfo(dtype).min)
    if not op.return_indices:
        return ChannelsLast(_reduced(g.last(op.input), windows, lax.max, least))
    image = g[op.input]
    size = image.shape[2:]
    offsets = np.arange(np.prod(size)).reshape(1, 1, *size)
    pixels = jnp.stack(_elements(image, windows, least))
    places = np.stack(_elements(offsets, windows, -1))
    inside = (places >= 0).argmax(axis=0)
    greatest = jnp.max(pixels, 0)
    # Padding is as small as the least pixel can be, but never where the maximum is.
    best = jnp.where(greatest == least, inside, jnp.argmax(pixels, 0))
    indices = jnp.take_along_axis(jnp.broadcast_to(places, pixels.shape), best[None], 0)
    return [greatest, indices[0]]


def _reduced(image: Value, windows: Windows, combine: object, neutral: float) -> Value:
    """A number for each window of an image whose channels are last."""
    size = image.shape[1:-1]
    sides, counts = windows.padding(size), windows.static_counts(size)
    reduced = lax.reduce_window(
        image,
        np.array(neutral, image.dtype),
        combine,
        (1, *static(windows.kernel), 1),
        (1, *windows.strides, 1),
        [(0, 0), *pairs(sides), (0, 0)],
        window_dilation=(1, *windows.dilations, 1),
    )
    return reduced[:, *(slice(count) for count in counts)]


def _elements(image: Value, windows: Windows, fill: float) -> list[Value]:
    """For each element of a window, the pixels that it meets in an image as models have it."""
    size = image.shape[2:]
    sides = windows.padding(size)
    frame = [(0, 0), (0, 0), *pairs(sides)]
    library = np if isinstance(image, np.ndarray) else jnp
    padded = library.pad(image, frame, constant_values=fill)
    counts, kernel = windows.static_counts(size), static(windows.kernel)
    parts = sliding_windows(padded, kernel, windows.strides, windows.dilations, counts)
    return [pixels for _, pixels in parts]
