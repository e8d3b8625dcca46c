"""Operators that put tensors together or take them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.axes import ComputedAxis
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, FloorDiv, Mul
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import And, Or, Where
from crosschip.ops.standard.slicing import Slice

_TO_END = 2**31 - 1


@imports("concat")
def concat(op: Context) -> None:
    parts, axis = op.inputs("X"), op.integer_or_tensor("axis", 0, "AxisTensor")
    if not isinstance(axis, Operand):
        op.make(Concat, parts=parts, axis=axis)
        return
    possible = _possible_axes(parts)
    if possible is not None and not possible:
        types = ", ".join(str(part.type) for part in parts)
        raise ModelError(f"X: {types} cannot be put together along any axis")
    if possible is not None and len(possible) == 1:
        (only,) = possible
        axis = op.as_type(axis, ElementType.INT64)
        fits = [op.add(Equal, axis, np.int64(n)) for n in (only, only - op.rank(parts[0]))]
        op.make(Concat, parts=op.add_all(Assert, op.add(Or, *fits), parts), axis=only)
    else:
        _concat_along_computed(op, parts, axis)


def _possible_axes(parts: Sequence[Operand]) -> Sequence[int] | None:
    """The axes along which tensors can be put together; `None` if a size is not known."""
    shapes = [part.type.static_shape for part in parts]
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return None
    if len({len(shape) for shape in known}) != 1:
        return ()
    differing = [axis for axis, sizes in enumerate(zip(*known, strict=True)) if len({*sizes}) > 1]
    return range(len(known[0])) if not differing else differing if len(differing) == 1 else ()


def _concat_along_computed(op: Context, parts: Sequence[Operand], axis: Operand) -> None:
    """Put tensors together along an axis that only a run knows.

    Each part becomes a matrix with a row for each index before the axis; the matrices are put
    together along their columns. A run ends with an error if another size differs, a part is empty,
    or the tensors have no such axis.
    """
    computed = ComputedAxis(op, axis, op.rank(parts[0]))
    sizes = [op.add(ShapeOf, part) for part in parts]
    fits, total = computed.exists, sizes[0]
    for other in sizes[1:]:
        fits = op.add(And, fits, op.add(Or, computed.is_it, op.add(Equal, other, sizes[0])))
        total = op.add(Add, total, other)
    matrices = []
    for part, size in zip(op.add_all(Assert, fits, parts), sizes, strict=True):
        shape = op.add(Concat, parts=[computed.before(size), computed.from_it_on(size)], axis=0)
        matrices.append(op.add(Reshape, part, shape))
    joined = op.add(Concat, parts=matrices, axis=1)
    op.make(Reshape, joined, op.add(Where, computed.is_it, total, sizes[0]))


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
