"""Operators that reduce axes to one value each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Shape
from crosschip.ir.types import FLOATS, NUMBERS
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.shapes import axes_in
from crosschip.ops.slots import flag, integers, tensor


class Reduction(Operator):
    """Base of reductions over `axes`, or over all axes if it is empty.

    A reduced axis has size 1 in the output with `keepdim`, else it is removed.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    axes = integers(())
    keepdim = flag(True)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axes = axes_in(self.axes, len(shape)) or range(len(shape))
        if self.keepdim:
            return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in axes)


@operator("REDUCE_MEAN")
class ReduceMean(Reduction):
    """The arithmetic mean."""

    __slots__ = ()
    input = tensor(FLOATS)

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.mean(input, tuple(axes) or None, keepdims=keepdim)


@operator("REDUCE_SUM")
class ReduceSum(Reduction):
    """The sum; integers wrap around on overflow."""

    __slots__ = ()

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.sum(input, tuple(axes) or None, input.dtype, keepdims=keepdim)


@operator("REDUCE_MAX")
class ReduceMax(Reduction):
    """The maximum; NaN if there is a NaN."""

    __slots__ = ()

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.max(input, tuple(axes) or None, keepdims=keepdim)
