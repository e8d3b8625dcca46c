"""Slices, reversals and crops."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.layout import Squeeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.slicing import Slice

_END = 2**31 - 1
_BEFORE_ALL = -(2**31)
"""The end of a backward slice that includes the first element."""


@imports("slice")
def slice(op: Context) -> None:
    _make(
        op,
        op.input("Input"),
        op.integers("axes"),
        op.integers_or_tensor("starts", "StartsTensor", "StartsTensorList"),
        op.integers_or_tensor("ends", "EndsTensor", "EndsTensorList"),
    )


@imports("strided_slice")
def strided_slice(op: Context) -> None:
    """Slice with steps; with a negative step, an end of -1 means before the first element."""
    x, axes = op.input("Input"), op.integers("axes")
    strides = op.integers_or_tensor("strides", "StridesTensor", "StridesTensorList")
    ends = op.integers_or_tensor("ends", "EndsTensor", "EndsTensorList")
    if isinstance(strides, tuple) and min(strides, default=1) < 0:
        if isinstance(ends, Operand) or not len(axes) == len(ends) == len(strides):
            raise UnsupportedError(f"strides {list(strides)}: the ends must be known, and as many")
        ends = tuple(
            _numpy_end(x, axis, end) if stride < 0 else end
            for axis, end, stride in zip(axes, ends, strides, strict=True)
        )
    starts = op.integers_or_tensor("starts", "StartsTensor", "StartsTensorList")
    _make(op, x, *_last_of_each_axis(op, x, axes, starts, ends, strides))


def _last_of_each_axis(
    op: Context, x: Operand, axes: tuple[int, ...], *parts: tuple[int, ...] | Operand
) -> tuple[tuple[int, ...] | Operand, ...]:
    """Return the axes without duplicates, and the last bounds and steps of each axis."""
    static = [part for part in parts if isinstance(part, tuple) and len(part) == len(axes)]
    if len(static) != len(parts) or x.type.shape in (None, ()):
        return axes, *parts
    last = {axis % op.rank(x): index for index, axis in enumerate(axes)}
    if len(last) == len(axes):
        return axes, *parts
    return tuple(last), *(tuple(part[index] for index in last.values()) for part in static)


def _numpy_end(x: Operand, axis: int, end: int) -> int:
    """Convert the end of a backward slice from Paddle 2's to NumPy's meaning."""
    if end == -1:
        return _BEFORE_ALL
    shape = x.type.shape
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    return max(end, -size) if isinstance(size, int) else end


@imports("pd_op.strided_slice")
def strided_slice_of_paddle3(op: Context) -> None:
    """Import `pd_op.strided_slice`: a slice with steps, as in NumPy."""
    x, axes = op.input("Input"), op.integers("axes")
    slots = (("starts", "StartsTensor"), ("ends", "EndsTensor"), ("strides", "StridesTensor"))
    _make(
        op, x, *_last_of_each_axis(op, x, axes, *(op.integers_or_tensor(*slot) for slot in slots))
    )


def _make(op: Context, *arguments: object) -> None:
    """Build a slice without the axes in `decrease_axis`."""
    if removed := op.integers("decrease_axis", ()):
        op.make(Squeeze, op.add(Slice, *arguments), removed)
    else:
        op.make(Slice, *arguments)


@imports("flip", "reverse")
def flip(op: Context) -> None:
    axes = op.integers("axis")
    count = len(axes)
    if axes:
        op.make(Slice, op.input(), axes, (-1,) * count, (_BEFORE_ALL,) * count, (-1,) * count)
    else:
        op.define(op.input())


@imports("crop")
def crop(op: Context) -> None:
    """Import `crop`: a crop to the shape of another tensor, or to one in an attribute."""
    like = op.optional_input("Y")
    sizes = op.integers_or_tensor("shape") if like is None else op.shape(like)
    _crop(op, sizes, op.integers_or_tensor("offsets", "Offsets"))


@imports("crop_tensor")
def crop_tensor(op: Context) -> None:
    """Import `crop_tensor`: a crop; a size of -1 extends to the end of the axis."""
    sizes = op.integers_or_tensor("shape", "Shape", "ShapeTensor")
    _crop(op, sizes, op.integers_or_tensor("offsets", "Offsets", "OffsetsTensor"))


def _crop(
    op: Context, sizes: tuple[int, ...] | Operand, offsets: tuple[int, ...] | Operand
) -> None:
    x = op.input()
    axes = tuple(range(op.rank(x)))
    offsets = offsets or (0,) * len(axes)
    if isinstance(sizes, tuple) and isinstance(offsets, tuple):
        if not len(sizes) == len(offsets) == len(axes):
            raise ModelError(
                f"shape {list(sizes)}, offsets {list(offsets)}: must be {len(axes)} numbers each"
            )
        pairs = zip(offsets, sizes, strict=True)
        ends = tuple(_END if size == -1 else start + size for start, size in pairs)
        op.make(Slice, x, axes, offsets, ends)
        return
    first, count = _integers(op, offsets), _integers(op, sizes)
    is_rest = op.add(Less, count, np.int64(0))
    op.make(
        Slice, x, axes, first, op.add(Where, is_rest, np.int64(_END), op.add(Add, first, count))
    )


def _integers(op: Context, values: tuple[int, ...] | Operand) -> Operand:
    if isinstance(values, Operand):
        return op.as_type(values, ElementType.INT64)
    return op.constant(np.array(values, np.int64), "sizes")
