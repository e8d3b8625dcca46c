"""Pixels picked from places in images."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import ElementType, Operand, UnsupportedError
from crosschip.ops.numerics.bilinear import Kernel
from crosschip.ops.standard.comparison import LessEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.padding import PadMode
from crosschip.ops.standard.reduction import CumSum, ReduceSum
from crosschip.ops.standard.sampling import GridSample, RoiAlign
from crosschip.ops.standard.slicing import Slice

_MODES = {"bilinear": Kernel.BILINEAR, "nearest": Kernel.NEAREST}
_PADDINGS = {
    "zeros": PadMode.CONSTANT,
    "border": PadMode.EDGE,
    "reflection": PadMode.REFLECT,
}


@imports("grid_sampler", "grid_sample")
def grid_sampler(op: Context) -> None:
    op.make(
        GridSample,
        op.input("X"),
        op.input("Grid"),
        align_corners=op.flag("align_corners", True),
        mode=op.one_of("mode", _MODES, "bilinear"),
        pad_mode=op.one_of("padding_mode", _PADDINGS, "zeros"),
        output="Output",
    )


@imports("roi_align")
def roi_align(op: Context) -> None:
    op.make(
        RoiAlign,
        op.input("X"),
        op.input("ROIs"),
        _images_of_regions(op),
        output_height=op.integer("pooled_height", 1),
        output_width=op.integer("pooled_width", 1),
        sampling_ratio=op.integer("sampling_ratio", -1),
        spatial_scale=op.real("spatial_scale", 1.0),
        aligned=op.flag("aligned", False),
    )


def _images_of_regions(op: Context) -> Operand:
    """The image of each region, from the number of each image's: [2, 3] is [0, 0, 1, 1, 1].

    A region is of image `i` if it comes after the last region of `i` images.
    """
    counts = op.optional_input("RoisNum")
    if counts is None:
        raise UnsupportedError("RoisNum: is left out, so the regions would be sequences (LoD)")
    ends = op.add(CumSum, op.as_type(counts, ElementType.INT64), 0)
    total = op.add(Slice, op.add(ShapeOf, op.input("ROIs")), (0,), (0,), (1,))
    first, step = (op.constant(np.array([n], np.int64), f"{counts.name}.{n}") for n in (0, 1))
    numbers = op.add(Unsqueeze, op.add(Range, first, total, step), (1,))
    is_after = op.add(Cast, op.add(LessEqual, ends, numbers), ElementType.INT32)
    return op.add(ReduceSum, is_after, (1,), keepdim=False)
