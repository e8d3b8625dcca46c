"""Sampling of images at fractional coordinates."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from crosschip.devices.kits.limits import PADDING_MODES
from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.indexing import within
from crosschip.devices.torch.converters.table import COMPUTED, converts
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.numerics.bilinear import Kernel as Interpolation
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode

_MODES = {
    Interpolation.BILINEAR: "bilinear",
    Interpolation.NEAREST: "nearest",
    Interpolation.BICUBIC: "bicubic",
}


def _coordinate_type(op: GridSample) -> Refusal | None:
    """Refuse a grid of fewer digits than the image: PyTorch computes coordinates in one type."""
    one, other = op.input.type.element_type, op.grid.type.element_type
    if one is ElementType.FLOAT64 and other is not one:
        return Refusal("grid", f"{other} of a {one} image is computed in {one}", Rule.ELEMENT_TYPE)
    return None


@converts(GridSample, limit=_coordinate_type)
def grid_sample(op: GridSample) -> Kernel:
    mode, padding, corners = _MODES[op.mode], PADDING_MODES[op.pad_mode], op.align_corners

    def run(x: Tensor, grid: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, grid.dtype)
        sampled = functional.grid_sample(x.to(wide), grid.to(wide), mode, padding, corners)
        return sampled.to(x.dtype)

    return run


@converts(RoiAlign, types=COMPUTED)
def roi_align(op: RoiAlign) -> Kernel:
    scale, shift, counts = op.spatial_scale, 0.5 * op.aligned, (op.output_height, op.output_width)

    def run(x: Tensor, rois: Tensor, batch_indices: Tensor) -> Tensor:
        if bool((batch_indices < 0).any()):
            raise ValueError("batch_indices: one is negative")
        images = within(batch_indices, x.shape[0]).tolist()
        scaled = rois * scale - shift
        extents = scaled[:, 2:] - scaled[:, :2]
        finite = torch.isfinite(torch.cat([scaled, extents], 1)).all(1, keepdim=True)
        scaled, extents = torch.where(finite, scaled, 0), torch.where(finite, extents, 0)
        extents = extents if op.aligned else torch.clamp(extents, min=1)
        output = x.new_zeros((len(images), x.shape[1], *counts))
        for cell, corner, extent, image in zip(output, scaled, extents, images, strict=True):
            (y, y_weights), (x_, x_weights) = (
                _samples(corner[1 - axis], extent[1 - axis], counts[axis], op.sampling_ratio, size)
                for axis, size in enumerate(x.shape[2:])
            )
            if y.numel() and x_.numel():
                weights = y_weights[:, :, :, None, None, None] * x_weights
                weighted = x[image][:, y[:, :, :, None, None, None], x_] * weights
                cell.copy_(
                    weighted.amax((2, 3, 5, 6))
                    if op.mode is RoiMode.MAX
                    else weighted.sum((3, 6)).mean((2, 4))
                )
        return output

    return run


def _samples(
    start: Tensor, extent: Tensor, count: int, ratio: int, size: int
) -> tuple[Tensor, Tensor]:
    """Return the two pixels of each sample of each cell on one axis, and their weights.

    Both are [count, number of samples, 2].
    """
    samples = ratio if ratio > 0 else max(0, int(torch.ceil(extent / count)))
    numbers = {"dtype": extent.dtype, "device": extent.device}
    steps = (torch.arange(samples, **numbers) + 0.5) / max(samples, 1)
    places = torch.arange(count, **numbers)[:, None] + steps
    coordinates = start + places * (extent / count)
    inside = (coordinates >= -1) & (coordinates <= size)
    clamped = torch.clamp(coordinates, 0, size - 1)
    low = clamped.long()
    part = clamped - low
    pixels = torch.stack([low, torch.clamp(low + 1, max=size - 1)], -1)
    return pixels, torch.stack([1 - part, part], -1) * inside[..., None]
