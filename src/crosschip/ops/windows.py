"""What convolutions and poolings share: padding, and windows that slide over an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum

import numpy as np

from crosschip.ir import Array, Dim, Shape
from crosschip.ir.dimension import ceil_div
from crosschip.ops.shapes import window_count


class AutoPad(IntEnum):
    """How much an image is padded (NNAdapterAutoPadCode).

    `NONE`: as `pads` says. `SAME`: so that there are `ceil(size / stride)` windows, with an odd
    rest at the bottom and on the right. `VALID`: not at all.
    """

    NONE = 0
    SAME = 1
    VALID = 2


def output_size(
    image: Sequence[Dim],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    auto_pad: AutoPad,
    pads: Sequence[int],
    *,
    ceil: bool = False,
) -> Shape:
    """Height and width of a convolution's or pooling's output.

    Raises:
        ValueError: no window fits, or a stride is not positive; the message starts with the slot.
    """
    if min(strides) < 1:
        raise ValueError(f"strides: {list(strides)} are not positive")
    if auto_pad is AutoPad.SAME:
        return tuple(ceil_div(size, stride) for size, stride in zip(image, strides, strict=True))
    sides = (0, 0, 0, 0) if auto_pad is AutoPad.VALID else pads
    return tuple(
        window_count(
            image[i] + sides[2 * i] + sides[2 * i + 1],
            extent(kernel[i], dilations[i]),
            strides[i],
            ceil=ceil,
        )
        for i in range(2)
    )


def extent(kernel: int, dilation: int) -> int:
    """How many pixels a dilated kernel spans."""
    return dilation * (kernel - 1) + 1


def resolve_pads(
    image: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    auto_pad: AutoPad,
    pads: Sequence[int],
) -> tuple[int, int, int, int]:
    """The padding in pixels: top, bottom, left, right."""
    if auto_pad is AutoPad.NONE:
        top, bottom, left, right = pads
        return top, bottom, left, right
    if auto_pad is AutoPad.VALID:
        return 0, 0, 0, 0
    total = [
        max(
            0,
            (-(-image[i] // strides[i]) - 1) * strides[i]
            + extent(kernel[i], dilations[i])
            - image[i],
        )
        for i in range(2)
    ]
    return total[0] // 2, -(-total[0] // 2), total[1] // 2, -(-total[1] // 2)


def pad_image(image: Array, pads: Sequence[int], value: float) -> Array:
    """An [N, C, H, W] image with a border of one value."""
    if not any(pads):
        return image
    top, bottom, left, right = pads
    return np.pad(image, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=value)


def taps(
    padded: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    size: Sequence[int],
) -> Iterator[tuple[int, int, Array]]:
    """For each element (i, j) of the kernel, the [N, C, *size] pixels that it meets."""
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            rows = slice(
                i * dilations[0], i * dilations[0] + (size[0] - 1) * strides[0] + 1, strides[0]
            )
            columns = slice(
                j * dilations[1], j * dilations[1] + (size[1] - 1) * strides[1] + 1, strides[1]
            )
            yield i, j, padded[:, :, rows, columns]
