"""Resampling of images to another height and width."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from crosschip.devices.torch.calls import Kernel
from crosschip.devices.torch.converters.table import as_element, converts
from crosschip.devices.torch.elements import of_array
from crosschip.ops.numerics.resampling import AlignMode, extrapolation_mask, nearest, scaled_size
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest

_PYTORCHS_CUBIC = -0.75


@converts(ResizeNearest)
def resize_nearest(op: ResizeNearest) -> Kernel:
    rounding, align_corners = op.rounding, op.align_corners
    value = as_element(op.extrapolation_value, op.input.type.element_type)

    @lru_cache(maxsize=8)
    def pixels(image: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        axes = op.axes(image)
        rows, columns = (nearest(axis, rounding, align_corners) for axis in axes)
        parts = (rows, columns, extrapolation_mask(axes))
        row, column, outside = (of_array(part).to(device) for part in parts)
        return row, column, outside

    def run(x: Tensor) -> Tensor:
        rows, columns, outside = pixels(tuple(x.shape[2:]), x.device)
        output = x.index_select(2, rows).index_select(3, columns)
        return output.masked_fill(outside, value) if op.align_mode is AlignMode.CROP else output

    return run


@converts(ResizeCubic, ResizeLinear)
def interpolate(op: ResizeCubic | ResizeLinear) -> Kernel:
    if _is_pytorchs(op):
        shape, corners, scales = op.shape, op.align_corners, op.scales or (None, None)
        aten, is_cubic = torch.ops.aten, isinstance(op, ResizeCubic)
        resample = aten.upsample_bicubic2d if is_cubic else aten.upsample_bilinear2d

        def resize(x: Tensor) -> Tensor:
            if shape is not None:
                return resample(x, shape, corners)
            sizes = [scaled_size(*pair) for pair in zip(x.shape[2:], op.scales or (), strict=True)]
            return resample(x, sizes, corners, *scales)

        return resize
    value, crops = op.extrapolation_value, op.align_mode is AlignMode.CROP

    @lru_cache(maxsize=8)
    def matrices(
        image: tuple[int, ...], dtype: torch.dtype, device: torch.device
    ) -> tuple[Tensor, Tensor, Tensor]:
        axes = op.axes(image)
        rows, columns = (
            of_array(op.neighbours(axis).matrix(axis.size)).to(device, dtype) for axis in axes
        )
        return rows, columns.T, of_array(extrapolation_mask(axes)).to(device)

    def run(x: Tensor) -> Tensor:
        rows, columns, outside = matrices(tuple(x.shape[2:]), x.dtype, x.device)
        output = torch.matmul(torch.matmul(rows, x), columns)
        return output.masked_fill(outside, value) if crops else output

    return run


def _is_pytorchs(op: ResizeCubic | ResizeLinear) -> bool:
    """Return whether PyTorch's interpolation has an operation's coordinates and weights."""
    if op.antialias or op.exclude_outside:
        return False
    if isinstance(op, ResizeCubic) and op.coefficient != _PYTORCHS_CUBIC:
        return False
    sizes = op.shape or ()
    known = 0 not in (op.input.type.shape or (0,)) and 0 not in sizes
    return known and (op.align_corners or op.align_mode is AlignMode.HALF_PIXEL)
