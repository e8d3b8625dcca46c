"""Regions of interest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, Operand
from crosschip.ops.standard.comparison import LessEqual
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.reduction import ReduceAny
from crosschip.ops.standard.sampling import RoiAlign
from crosschip.ops.standard.slicing import Slice
from crosschip.passes.rewrite_operations import constant_like, rebuild


def zero_for_no_samples(b: Builder, op: RoiAlign) -> Sequence[Operand] | None:
    """Sample one pixel for a region without extent, and return 0 for its cells.

    Quirk `region-without-extent`.
    """
    if not op.aligned or op.sampling_ratio > 0:
        return None
    corner, end = (b.add(Slice, op.rois, (1,), (at,), (at + 2,), (1,)) for at in (0, 2))
    is_nothing = b.add(ReduceAny, b.add(LessEqual, end, corner), (1,), keepdim=True)
    region = np.array([[0, 0, 1, 1]], op.rois.type.element_type.dtype)
    cells = rebuild(b, op, rois=b.add(Where, is_nothing, region, op.rois))
    is_nothing = b.add(Unsqueeze, is_nothing, (2, 3))
    return (b.add(Where, is_nothing, constant_like(b, op.input, 0), cells),)
