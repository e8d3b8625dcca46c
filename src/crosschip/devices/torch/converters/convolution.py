"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import converts
from crosschip.ops.definition.windows import AutoPad, Windows, extent
from crosschip.ops.standard import convolution

CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_TRANSPOSED = {
    1: functional.conv_transpose1d,
    2: functional.conv_transpose2d,
    3: functional.conv_transpose3d,
}


def reverse_pads(pads: Sequence[int]) -> list[int]:
    """Return the pads of spatial axes in PyTorch's order: those of the last axis first."""
    return [pad for end in range(len(pads), 0, -2) for pad in pads[end - 2 : end]]


def padded(windows: Windows, image: Tensor, value: float = 0) -> tuple[Tensor, Sequence[int]]:
    """Return an image and its convolution's padding; different sides are padded in the image."""
    sides = windows.sides(image.shape[2:])
    if sides[::2] == sides[1::2]:
        return image, sides[::2]
    return torch.constant_pad_nd(image, reverse_pads(sides), value), (0,) * windows.rank


def of_nothing(windows: Windows, x: Tensor, filter: Tensor, bias: Tensor | None) -> Tensor:
    """Return the convolution of no elements (quirk `convolution-of-nothing`)."""
    counts = windows.static_counts(x.shape[2:])
    zeros = x.new_zeros((x.shape[0], filter.shape[0], *counts))
    return zeros if bias is None else zeros + bias.reshape(-1, *(1,) * windows.rank)


@converts(convolution.Conv1D, convolution.Conv2D, convolution.Conv3D, narrow=True)
def convolve(op: convolution.Conv) -> Kernel:
    function = CONVOLUTIONS[op.spatial_rank]
    strides, dilations, group = op.strides, op.dilations, op.group
    explicit = op.auto_pad is AutoPad.NONE and op.pads[::2] == op.pads[1::2]
    same = op.pads[::2] if explicit else None

    def run(x: Tensor, filter: Tensor, bias: Tensor | None) -> Tensor:
        if not (x.numel() and filter.numel()):
            return of_nothing(op.windows(filter.shape[2:]), x, filter, bias)
        image, pads = (x, same) if same else padded(op.windows(filter.shape[2:]), x)
        return function(image, filter, bias, strides, pads, dilations, group)

    return run


@converts(
    convolution.Conv1DTranspose,
    convolution.Conv2DTranspose,
    convolution.Conv3DTranspose,
    narrow=True,
)
def convolve_transposed(op: convolution.ConvTranspose) -> Kernel:
    function: Any = _TRANSPOSED[op.spatial_rank]
    strides, dilations, group = op.strides, op.dilations, op.group
    explicit = op.auto_pad is AutoPad.NONE and op.output_shape is None
    pads = op.pads[::2]
    same = explicit and pads == op.pads[1::2] and not any(op.output_padding)

    def run(x: Tensor, filter: Tensor, bias: Tensor | None) -> Tensor:
        if same and x.numel() and filter.numel():
            return function(x, filter, bias, strides, pads, 0, group, dilations)
        if x.numel() and filter.numel():
            full = function(x, filter, None, strides, 0, 0, group, dilations)
        else:
            sizes = zip(x.shape[2:], filter.shape[2:], strides, dilations, strict=True)
            spatial = ((size - 1) * s + extent(k, d) for size, k, s, d in sizes)
            full = x.new_zeros((x.shape[0], filter.shape[1] * group, *spatial))
        cut = _cut(op, x.shape[2:], filter.shape[2:])
        appended = [max(0, -pixels) if at % 2 else 0 for at, pixels in enumerate(cut)]
        output = torch.constant_pad_nd(full, reverse_pads(appended), 0)
        for axis, (before, after) in enumerate(zip(cut[::2], cut[1::2], strict=True), 2):
            end = output.shape[axis] - max(0, after)
            output = torch.ops.aten.slice.Tensor(output, axis, before, max(before, end))
        return output if bias is None else output + bias.reshape(-1, *(1,) * op.spatial_rank)

    return run


def _cut(
    op: convolution.ConvTranspose, image: Sequence[int], kernel: Sequence[int]
) -> Sequence[int]:
    """Return the pixels to remove before and after each axis; negative to append zeros."""
    cut: list[int] = []
    pads = op.pads if op.auto_pad is AutoPad.NONE else (0,) * len(op.pads)
    for axis, size in enumerate(image):
        full = (size - 1) * op.strides[axis] + extent(kernel[axis], op.dilations[axis])
        extra = op.output_padding[axis]
        before, after = pads[2 * axis : 2 * axis + 2]
        if op.auto_pad.keeps_size:
            total = full + extra - size * op.strides[axis]
            before = op.auto_pad.divided(max(0, total))[0]
            after = total - before
        elif op.output_shape is not None:
            after = full + extra - op.output_shape[axis] - before
        cut += [before, after - extra]
    return cut
