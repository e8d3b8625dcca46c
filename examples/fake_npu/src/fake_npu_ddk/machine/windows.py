"""Windows that slide over images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fake_npu_ddk.operators import Settings
from fake_npu_ddk.tensors import Array


def framed(image: Array, pads: Sequence[int], value: float) -> Array:
    """An [N, H, W, C] image with a border of one value."""
    if not any(pads):
        return image
    top, bottom, left, right = pads
    sides = ((0, 0), (top, bottom), (left, right), (0, 0))
    return np.pad(image, sides, constant_values=value)


def windows(image: Array, kernel: Sequence[int], settings: Settings) -> Array:
    """A view of a framed image: [N, H_out, W_out, kernel_h, kernel_w, C]."""
    down, right = settings.dilations
    reach = ((kernel[0] - 1) * down + 1, (kernel[1] - 1) * right + 1)
    moved = np.lib.stride_tricks.sliding_window_view(image, reach, axis=(1, 2))
    chosen = moved[:, :: settings.strides[0], :: settings.strides[1], :, ::down, ::right]
    return chosen.transpose(0, 1, 2, 4, 5, 3)


def strips(count: int, rows: int) -> Iterator[slice]:
    """The rows of an output, so many at once."""
    for first in range(0, count, rows):
        yield slice(first, first + rows)
