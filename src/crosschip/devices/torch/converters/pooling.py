"""Pooling over windows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import torch
from torch import Tensor
from torch.nn import functional

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.convolution import CONVOLUTIONS, reverse_pads
from crosschip.devices.torch.converters.table import converts
from crosschip.devices.torch.elements import of_array
from crosschip.ops.definition.windows import Windows, static
from crosschip.ops.standard import pooling

_MAXIMA: dict[int, Kernel] = {
    1: functional.max_pool1d,
    2: functional.max_pool2d,
    3: functional.max_pool3d,
}


@converts(pooling.AveragePool1D, pooling.AveragePool2D, pooling.AveragePool3D)
def average_pool(op: pooling.AveragePool) -> Kernel:
    windows, with_padding = op.windows, op.count_include_pad
    kernel = static(windows.kernel)

    @lru_cache(maxsize=8)
    def population(image: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        return of_array(windows.population(image, with_padding=with_padding)).to(device, dtype)

    def run(x: Tensor) -> Tensor:
        image = tuple(x.shape[2:])
        sums = _sums(_padded(x, windows, 0), windows, kernel)
        counts = windows.static_counts(image)
        sums = sums[(..., *(slice(count) for count in counts))]
        return sums / population(image, x.dtype, x.device)

    return run


def _sums(image: Tensor, windows: Windows, kernel: Sequence[int]) -> Tensor:
    """Return the sum of each window of an image."""
    strides, channels = tuple(windows.strides), image.shape[1]
    if set(windows.dilations) == {1} and windows.rank == 2:
        return functional.avg_pool2d(image, kernel, strides, divisor_override=1)
    if set(windows.dilations) == {1} and windows.rank == 3:
        return functional.avg_pool3d(image, kernel, strides, divisor_override=1)
    ones = torch.ones((channels, 1, *kernel), dtype=image.dtype, device=image.device)
    return CONVOLUTIONS[windows.rank](image, ones, None, strides, 0, windows.dilations, channels)


def _padded(x: Tensor, windows: Windows, value: float) -> Tensor:
    """Return an image with the padding that windows cover."""
    sides = windows.padding(x.shape[2:])
    return torch.constant_pad_nd(x, reverse_pads(sides), value) if any(sides) else x


@converts(pooling.MaxPool1D, pooling.MaxPool2D, pooling.MaxPool3D, narrow=True)
def max_pool(op: pooling.MaxPool) -> Kernel:
    windows, indexed, pool = op.windows, op.return_indices, _MAXIMA[op.spatial_rank]
    kernel, strides, dilations = static(windows.kernel), windows.strides, windows.dilations

    def run(x: Tensor) -> Tensor | Sequence[Tensor]:
        image = x.shape[2:]
        sides, counts = windows.padding(image), windows.static_counts(image)
        inside = (..., *(slice(count) for count in counts))
        reals = x if x.is_floating_point() else x.float()
        pads = sides[::2]
        # PyTorch pads by at most half a window, and both sides alike; of a window without a pixel,
        # which only dilation makes then, its index is not -1.
        is_padded = (
            pads != sides[1::2]
            or any(2 * pad > size for pad, size in zip(pads, kernel, strict=True))
            or (indexed and max(dilations) > 1)
        )
        if is_padded:
            # Padding must be less than each pixel, to be never the maximum.
            reals = _padded(_finite(reals) if indexed else reals, windows, float("-inf"))
            pads = (0,) * len(pads)
        result = pool(reals, kernel, strides, pads, dilations, return_indices=indexed)
        if not indexed:
            return _stored(result[inside], x.dtype)
        values, indices = (part[inside] for part in result)
        indices = _in_image(indices, image, sides) if is_padded else indices
        return _stored(values, x.dtype), indices

    return run


def _finite(x: Tensor) -> Tensor:
    """Return an image with its least finite number instead of minus infinity."""
    return torch.where(x == float("-inf"), torch.finfo(x.dtype).min, x)


def _stored(maxima: Tensor, dtype: torch.dtype) -> Tensor:
    """Return maxima in the type of the image; those of no pixel are its least number."""
    if dtype.is_floating_point:
        return maxima
    return torch.clamp(maxima, min=torch.iinfo(dtype).min).to(dtype)


def _in_image(indices: Tensor, image: Sequence[int], sides: Sequence[int]) -> Tensor:
    """Return the offsets in an image of those in its padded form; -1 for those in the padding."""
    wide = [size + sum(sides[2 * axis : 2 * axis + 2]) for axis, size in enumerate(image)]
    offsets, inside = torch.zeros_like(indices), torch.ones_like(indices, dtype=torch.bool)
    for axis, size in enumerate(image):
        place = indices // prod(wide[axis + 1 :]) % wide[axis] - sides[2 * axis]
        inside &= (place >= 0) & (place < size)
        offsets = offsets * size + place
    return torch.where(inside, offsets, -1)
