"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from crosschip.devices.kits.stablehlo.converters.convolution import pairs
from crosschip.devices.kits.stablehlo.converters.table import converts
from crosschip.devices.kits.stablehlo.graph import ChannelsLast, Graph, Value
from crosschip.ops.definition.windows import Windows, sliding_windows, static
from crosschip.ops.standard import pooling


@converts(pooling.AveragePool1D, pooling.AveragePool2D, pooling.AveragePool3D)
def average_pool(g: Graph, op: pooling.AveragePool) -> ChannelsLast:
    image, windows = g.last(op.input), op.windows
    total = _reduce_windows(image, windows, lax.add, 0)
    population = windows.population(image.shape[1:-1], with_padding=op.count_include_pad)
    return ChannelsLast(total / population[0, 0, ..., None].astype(image.dtype))


@converts(pooling.MaxPool1D, pooling.MaxPool2D, pooling.MaxPool3D, narrow=True)
def max_pool(g: Graph, op: pooling.MaxPool) -> ChannelsLast | Sequence[Value]:
    windows, dtype = op.windows, op.outputs[0].type.element_type.dtype
    real = jnp.issubdtype(dtype, jnp.floating)
    least = -np.inf if real else int(jnp.iinfo(dtype).min)
    if not op.return_indices:
        return ChannelsLast(_reduce_windows(g.last(op.input), windows, lax.max, least))
    image = g[op.input]
    size = image.shape[2:]
    offsets = np.arange(np.prod(size)).reshape(1, 1, *size)
    pixels = jnp.stack(_window_elements(image, windows, least))
    indices_in_windows = np.stack(_window_elements(offsets, windows, -1))
    inside = (indices_in_windows >= 0).argmax(axis=0)
    maxima = jnp.max(pixels, 0)
    # Padding is as small as the least pixel can be, but never where the maximum is.
    best = jnp.where(maxima == least, inside, jnp.argmax(pixels, 0))
    indices = jnp.take_along_axis(jnp.broadcast_to(indices_in_windows, pixels.shape), best[None], 0)
    return [maxima, indices[0]]


def _reduce_windows(image: Value, windows: Windows, combine: object, neutral: float) -> Value:
    """Reduce each window of an image whose channels are last to one number."""
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


def _window_elements(image: Value, windows: Windows, fill: float) -> list[Value]:
    """Return, for each element of a window, the pixels under it in an NC… image."""
    size = image.shape[2:]
    sides = windows.padding(size)
    frame = [(0, 0), (0, 0), *pairs(sides)]
    library = np if isinstance(image, np.ndarray) else jnp
    padded = library.pad(image, frame, constant_values=fill)
    counts, kernel = windows.static_counts(size), static(windows.kernel)
    parts = sliding_windows(padded, kernel, windows.strides, windows.dilations, counts)
    return [pixels for _, pixels in parts]
