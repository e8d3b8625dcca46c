"""Operators that cut a part out of a tensor."""

from __future__ import annotations

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.layout import Squeeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.slicing import Slice

_TO_END = 2**31 - 1
_BEFORE_ALL = -(2**31)
"""The end of a slice that goes backwards to the first element and includes it."""


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
    """Backwards, an end of -1 is before the first element, and one beyond it is the first."""
    x, axes = op.input("Input"), op.integers("axes")
    strides = op.integers_or_tensor("strides", "StridesTensor", "StridesTensorList")
    ends = op.integers_or_tensor("ends", "EndsTensor", "EndsTensorList")
    if isinstance(strides, tuple) and min(strides, default=1) < 0:
        if isinstance(ends, Operand) or not len(axes) == len(ends) == len(strides):
            raise UnsupportedError(f"strides {list(strides)}: the ends must be known, and as many")
        ends = tuple(
            _end_before(x, axis, end) if stride < 0 else end
            for axis, end, stride in zip(axes, ends, strides, strict=True)
        )
    starts = op.integers_or_tensor("starts", "StartsTensor", "StartsTensorList")
    _make(op, x, *_last_of_each(op, x, axes, starts, ends, strides))


def _last_of_each(
    op: Context, x: Operand, axes: tuple[int, ...], *parts: tuple[int, ...] | Operand
) -> tuple[tuple[int, ...] | Operand, ...]:
    """The axes, each once, and what is said of each the last time that it is named."""
    known = [part for part in parts if isinstance(part, tuple) and len(part) == len(axes)]
    if len(known) != len(parts) or x.type.shape in (None, ()):
        return axes, *parts
    places = {axis % op.rank(x): place for place, axis in enumerate(axes)}
    if len(places) == len(axes):
        return axes, *parts
    return tuple(places), *(tuple(part[place] for place in places.values()) for part in known)


def _end_before(x: Operand, axis: int, end: int) -> int:
    """The end of a slice that goes backwards, from Paddle 2's meaning to NumPy's."""
    if end == -1:
        return _BEFORE_ALL
    shape = x.type.shape
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    return max(end, -size) if isinstance(size, int) else end


@imports("pd_op.strided_slice")
def strided_slice_of_paddle3(op: Context) -> None:
    """The same as NumPy has it."""
    x, axes = op.input("Input"), op.integers("axes")
    slots = (("starts", "StartsTensor"), ("ends", "EndsTensor"), ("strides", "StridesTensor"))
    _make(op, x, *_last_of_each(op, x, axes, *(op.integers_or_tensor(*slot) for slot in slots)))


def _make(op: Context, *arguments: object) -> None:
    """A slice, without the axes that are to be removed."""
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
    """A box of the sizes of another tensor, or of an attribute."""
    like = op.optional_input("Y")
    sizes = op.integers_or_tensor("shape") if like is None else op.shape(like)
    _crop(op, sizes, op.integers_or_tensor("offsets", "Offsets"))


@imports("crop_tensor")
def crop_tensor(op: Context) -> None:
    """A box; a size of -1 is what is left of the axis."""
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
        ends = tuple(_TO_END if size == -1 else start + size for start, size in pairs)
        op.make(Slice, x, axes, offsets, ends)
        return
    first, count = _integers(op, offsets), _integers(op, sizes)
    is_rest = op.add(Less, count, np.int64(0))
    op.make(
        Slice, x, axes, first, op.add(Where, is_rest, np.int64(_TO_END), op.add(Add, first, count))
    )


def _integers(op: Context, values: tuple[int, ...] | Operand) -> Operand:
    if isinstance(values, Operand):
        return op.as_type(values, ElementType.INT64)
    return op.constant(np.array(values, np.int64), "sizes")
