"""Sampling of images at coordinates, compared with PyTorch and ONNX's evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.ops.oracle import functional, of_onnx, torch

from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.sampling import GridSample, RoiAlign, RoiMode

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("border", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_sampling(check: Checker, mode: str, border: str, align_corners: bool) -> None:
    random = np.random.default_rng(6)
    grid = random.uniform(-3, 3, (2, 4, 5, 2)).astype(np.float32)
    grid[0, 0] = np.array([[-1, -1], [1, 1], [0, 0], [-1, 1], [0.2, 0.2]])
    borders = {
        "zeros": PadMode.CONSTANT,
        "border": PadMode.EDGE,
        "reflection": PadMode.REFLECT,
    }
    check(
        lambda b, x, grid: b.add(
            GridSample, x, grid, align_corners, Kernel[mode.upper()], borders[border]
        ),
        lambda x, grid: functional.grid_sample(
            *(torch.from_numpy(x), torch.from_numpy(grid), mode, border, align_corners)
        ),
        (2, 3, 5, 6),
        grid,
    )


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("mode", RoiMode)
def test_roi_align(check: Checker, ratio: int, aligned: bool, mode: RoiMode) -> None:
    rois = np.array([[0.4, 1.5, 5.1, 6.2], [-2.0, 0.0, 9.0, 3.3]], np.float32)
    compute = of_onnx(
        "RoiAlign",
        mode="max" if mode is RoiMode.MAX else "avg",
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        output_height=3,
        output_width=2,
        sampling_ratio=ratio,
        spatial_scale=0.8,
    )
    check(
        lambda b, *operands: b.add(RoiAlign, *operands, 3, 2, ratio, 0.8, aligned, mode),
        compute,
        *((2, 2, 7, 6), rois, np.array([1, 0])),
    )
