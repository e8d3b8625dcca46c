"""What Paddle's operators compute, element by element, as its documentation says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np

from crosschip.ir import Array

Four = Sequence[int]
Two = Sequence[int]


def convolved(
    x: Array, w: Array, pads: Four, strides: Two = (1, 1), dilations: Two = (1, 1), groups: int = 1
) -> Array:
    """The convolution of images [N, C, H, W]; `pads` are top, bottom, left, right."""
    padded = np.pad(x, ((0, 0), (0, 0), pads[:2], pads[2:]))
    spans = [dilations[i] * (w.shape[2 + i] - 1) + 1 for i in range(2)]
    size = [(padded.shape[2 + i] - spans[i]) // strides[i] + 1 for i in range(2)]
    y = np.zeros((x.shape[0], w.shape[0], *size), x.dtype)
    per_group = w.shape[0] // groups
    for o, i, j in product(range(w.shape[0]), *map(range, size)):
        first = o // per_group * w.shape[1]
        rows = slice(i * strides[0], i * strides[0] + spans[0], dilations[0])
        columns = slice(j * strides[1], j * strides[1] + spans[1], dilations[1])
        window = padded[:, first : first + w.shape[1], rows, columns]
        y[:, o, i, j] = (window * w[o]).sum(axis=(1, 2, 3))
    return y


def transposed(
    x: Array, w: Array, pad: int, stride: int, groups: int = 1, larger: int = 0
) -> Array:
    """The transposed convolution; `larger` is by how much the output is enlarged."""
    height, width = (
        (s - 1) * stride + k + larger for s, k in zip(x.shape[2:], w.shape[2:], strict=True)
    )
    into, per_group = w.shape[0] // groups, w.shape[1]
    y = np.zeros((x.shape[0], per_group * groups, height, width), x.dtype)
    for c, o, i, j in product(range(w.shape[0]), range(per_group), *map(range, x.shape[2:])):
        rows = slice(i * stride, i * stride + w.shape[2])
        columns = slice(j * stride, j * stride + w.shape[3])
        out = c // into * per_group + o
        y[:, out, rows, columns] += x[:, c, i, j, None, None] * w[c, o]
    return y[:, :, pad : height - pad, pad : width - pad]


def windows(
    size: int, kernel: int, stride: int, pads: Two, ceil: bool
) -> Iterator[tuple[int, int]]:
    """The begin and end of each window along an axis; they can lie outside."""
    room = size + sum(pads) - kernel + (stride - 1 if ceil else 0)
    for i in range(room // stride + 1):
        yield i * stride - pads[0], i * stride - pads[0] + kernel


def pooled(
    x: Array,
    reduce: Callable[[Array], Array],
    kernel: Two,
    strides: Two,
    pads: Four,
    ceil: bool = False,
) -> Array:
    """What `reduce` makes of the pixels [N, C, h, w] inside the image in each window."""
    rows, columns = (
        list(windows(x.shape[2 + i], kernel[i], strides[i], pads[2 * i : 2 * i + 2], ceil))
        for i in range(2)
    )
    y = np.zeros((*x.shape[:2], len(rows), len(columns)), x.dtype)
    for (i, (top, bottom)), (j, (left, right)) in product(enumerate(rows), enumerate(columns)):
        y[:, :, i, j] = reduce(x[:, :, max(top, 0) : bottom, max(left, 0) : right])
    return y


def resampled(x: Array, size: Two, place: Callable[[int, int, int], float]) -> Array:
    """The bilinear interpolation of images; `place(target, old, new)` is where a pixel is from."""
    for axis, new in zip((2, 3), size, strict=True):
        old = x.shape[axis]
        rows = []
        for target in range(new):
            exact = min(max(place(target, old, new), 0.0), old - 1.0)
            low = int(exact)
            high = min(low + 1, old - 1)
            rows.append(x.take(low, axis) * (low + 1 - exact) + x.take(high, axis) * (exact - low))
        x = np.stack(rows, axis)
    return x


def picked(x: Array, size: Two) -> Array:
    """The nearest pixels, rounded down."""
    rows, columns = ([i * s // n for i in range(n)] for s, n in zip(x.shape[2:], size, strict=True))
    return x[:, :, rows][:, :, :, columns]
