"""Sampling of images at computed coordinates."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, Operand, UnsupportedError
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.sampling import GridSample, RoiAlign

_MODES = {"bilinear": Kernel.BILINEAR, "nearest": Kernel.NEAREST}
_PADDINGS = {"zeros": PadMode.CONSTANT, "border": PadMode.EDGE, "reflection": PadMode.REFLECT}


@imports("grid_sampler", "grid_sample")
def grid_sampler(op: Context) -> None:
    op.make(
        GridSample,
        op.input("X"),
        op.input("Grid"),
        align_corners=op.flag("align_corners", True),
        mode=op.option("mode", _MODES, "bilinear"),
        pad_mode=op.option("padding_mode", _PADDINGS, "zeros"),
        output="Output",
    )


@imports("roi_align")
def roi_align(op: Context) -> None:
    op.make(
        RoiAlign,
        op.input("X"),
        op.input("ROIs"),
        _region_images(op),
        output_height=op.integer("pooled_height", 1),
        output_width=op.integer("pooled_width", 1),
        sampling_ratio=op.integer("sampling_ratio", -1),
        spatial_scale=op.real("spatial_scale", 1.0),
        aligned=op.flag("aligned", False),
    )


def _region_images(op: Context) -> Operand:
    """Return the image index of each region: counts [2, 3] yield [0, 0, 1, 1, 1]."""
    counts = op.optional_input("RoisNum")
    if counts is None:
        offsets = op.levels("ROIs")[-1]
    else:
        offsets = ragged.offsets_from_lengths(op, op.as_type(counts, ElementType.INT64))
    return ragged.row_sequences(op, offsets, ragged.arange(op, ragged.size(op, op.input("ROIs"))))


@imports("affine_grid")
def affine_grid(op: Context) -> None:
    """Transform the coordinates of pixels, from -1 to 1, by an affine matrix for each image."""
    theta, shape = op.input("Theta"), op.integers("output_shape", (), "OutputShape")
    if len(shape) != 4 or min(shape) < 1:
        raise UnsupportedError(f"output_shape: {list(shape)} must be four known sizes")
    coordinates = []
    for size in shape[:1:-1]:
        edge = 1.0 if op.flag("align_corners", True) else 1 - 1 / size
        coordinates.append(np.linspace(-edge, edge, size))
    columns, rows = np.meshgrid(*coordinates)
    base = np.stack([columns, rows, np.ones_like(rows)], -1).reshape(1, -1, 3)
    grid = op.constant(base.astype(theta.type.element_type.dtype), "grid")
    transformed = op.add(MatMul, grid, theta, transpose_y=True)
    op.make(Reshape, transformed, (-1, *shape[2:], 2), output="Output")
