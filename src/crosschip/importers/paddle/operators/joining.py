"""Operators that put tensors together or take them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import Array, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import FloorDiv, Mul
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import Or
from crosschip.ops.standard.slicing import Slice

_TO_END = 2**31 - 1


@imports("concat")
def concat(op: Context) -> None:
    parts, axis = op.inputs("X"), op.integer_or_tensor("axis", 0, "AxisTensor")
    if isinstance(axis, Operand):
        place, rank = _differing(parts), op.rank(parts[0])
        is_it = (op.add(Equal, axis, _like(axis, number)) for number in (place, place - rank))
        parts, axis = op.add_all(Assert, op.add(Or, *is_it), parts), place
    op.make(Concat, parts=parts, axis=axis)


def _differing(parts: Sequence[Operand]) -> int:
    """The axis along which tensors can be put together, where only one is possible.

    Raises:
        UnsupportedError: there are several, or sizes are not known.
    """
    sizes = [part.type.static_shape for part in parts]
    ranks = {None if size is None else len(size) for size in sizes}
    if len(ranks) == 1 and None not in ranks:
        axes = list(zip(*(size for size in sizes if size is not None), strict=True))
        differing = [axis for axis, of_parts in enumerate(axes) if len(set(of_parts)) > 1]
        if len(axes) == 1 or len(differing) == 1:
            return differing[0] if differing else 0
    raise UnsupportedError(
        "axis is computed when the model runs, and does not follow from the sizes; it must be known"
    )


def _like(operand: Operand, number: int) -> Array:
    return np.array(number, operand.type.element_type.dtype)


@imports("stack")
def stack(op: Context) -> None:
    parts = op.inputs("X")
    op.make(Stack, parts, op.integer("axis", 0), output="Y")
    if all(part.type.shape == () for part in parts):
        op.stacks(parts, "Y")


@imports("unstack")
def unstack(op: Context) -> None:
    op.make(Unstack, op.input(), op.integer("axis", 0), op.count("Y"), output="Y")


@imports("split")
def split(op: Context) -> None:
    """Parts of an axis; where its size is open, each is cut out by itself."""
    x, axis = op.input(), op.integer("axis", 0, "AxisTensor")
    sections = op.integers("sections", (), "SectionsTensorList")
    if sections.count(-1) > 1:
        raise ModelError(f"sections: {list(sections)} leave several sizes open")
    size = _size(op, axis)
    if size is None:
        _cut_out(op, sections or _equal_sections(op, axis), axis)
        return
    if -1 in sections:
        rest = size - sum(part for part in sections if part != -1)
        sections = tuple(rest if part == -1 else part for part in sections)
    if not sections:
        count = op.count()
        if op.integer("num") != count or not count or size % count:
            raise ModelError(f"num: {size} cannot be split into {op.integer('num')} equal parts")
        sections = (size // count,) * count
    op.make(Split, x, axis, sections)


def _equal_sections(op: Context, axis: int) -> Operand:
    """The size of each of as many parts as there are outputs, where it is computed."""
    count = op.count()
    if op.integer("num") != count or not count:
        raise ModelError(f"num: {op.integer('num')} parts are {count} outputs")
    return op.add(FloorDiv, ragged.size(op, op.input(), axis), np.int64(count))


def _cut_out(op: Context, sections: tuple[int, ...] | Operand, axis: int) -> None:
    """Make the parts of an axis of open size: as large as one another, or one of them open."""
    x, results = op.input(), op.results()
    if not isinstance(sections, Operand) and len(sections) != len(results):
        raise ModelError(f"sections: {list(sections)} are not as many as the outputs")
    for place, result in enumerate(results):
        bounds: Sequence[object]
        if isinstance(sections, Operand):
            numbers = (np.int64(place), np.int64(place + 1))
            starts = (op.add(Mul, sections, number) for number in numbers)
            bounds = [op.add(Reshape, start, (1,)) for start in starts]
        else:
            bounds = _bounds(sections, place)
        op.values.define(result, op.add(Slice, x, (axis,), *bounds))


def _bounds(sections: tuple[int, ...], place: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where a section begins and ends, counted from the end if it is after one of open size."""
    open_place = sections.index(-1) if -1 in sections else len(sections)
    if place <= open_place:
        start = sum(sections[:place])
        end = start + sections[place]
    else:
        start, end = -sum(sections[place:]), -sum(sections[place + 1 :])
    if place == open_place:
        end = -sum(sections[place + 1 :])
    at_end = end == 0 and (place >= open_place)
    return (start,), (_TO_END if at_end else end,)


def _size(op: Context, axis: int) -> int | None:
    """The size of an axis; `None` if it is open."""
    shape = op.input().type.shape
    if shape is None:
        raise UnsupportedError(f"the axes of {op.input().type} must be known")
    if not -len(shape) <= axis < len(shape):
        raise ModelError(f"axis: {axis} is not an axis of {op.input().type}")
    size = shape[axis]
    return size if isinstance(size, int) else None


@imports("unbind")
def unbind(op: Context) -> None:
    op.make(Unstack, op.input(), op.integer("axis", 0), op.count())


@imports("meshgrid")
def meshgrid(op: Context) -> None:
    op.make(Meshgrid, op.inputs("X"))


@imports("partial_concat")
def partial_concat(op: Context) -> None:
    """The same columns of some tensors beside each other."""
    op.make(Concat, parts=columns(op), axis=1)


def columns(op: Context) -> Sequence[Operand]:
    """The same columns of each input, from one on, as many as `length` or all."""
    start, count = op.integer("start_index", 0), op.integer("length", -1)
    end = _TO_END if count < 0 else start + count
    if start < 0 <= start + count:
        end = _TO_END
    return [op.add(Slice, part, (1,), (start,), (end,)) for part in op.inputs("X")]
