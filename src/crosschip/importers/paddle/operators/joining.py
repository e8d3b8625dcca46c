"""Operators that concatenate, stack and split tensors."""

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

_END = 2**31 - 1


@imports("concat")
def concat(op: Context) -> None:
    parts, axis = op.inputs("X"), op.integer_or_tensor("axis", 0, "AxisTensor")
    if not isinstance(axis, Operand):
        op.make(Concat, parts=parts, axis=axis)
        return
    axes = _concat_axes(parts)
    if axes is not None and not axes:
        types = ", ".join(str(part.type) for part in parts)
        raise ModelError(f"X: {types} cannot be concatenated along any axis")
    if axes is not None and len(axes) == 1:
        (only,) = axes
        axis = op.as_type(axis, ElementType.INT64)
        fits = [op.add(Equal, axis, np.int64(n)) for n in (only, only - op.rank(parts[0]))]
        op.make(Concat, parts=op.add_all(Assert, op.add(Or, *fits), parts), axis=only)
    else:
        _concat_along_computed_axis(op, parts, axis)


def _concat_axes(parts: Sequence[Operand]) -> Sequence[int] | None:
    """Return the axes along which tensors can be concatenated; `None` if a size is unknown."""
    shapes = [part.type.static_shape for part in parts]
    static = [shape for shape in shapes if shape is not None]
    if len(static) != len(shapes):
        return None
    if len({len(shape) for shape in static}) != 1:
        return ()
    differing = [axis for axis, sizes in enumerate(zip(*static, strict=True)) if len({*sizes}) > 1]
    return range(len(static[0])) if not differing else differing if len(differing) == 1 else ()


def _concat_along_computed_axis(op: Context, parts: Sequence[Operand], axis: Operand) -> None:
    """Concatenate tensors along an axis that is computed when the model runs.

    Each part is reshaped to a matrix [size_before, size_from], and the matrices are concatenated
    along their columns. The run fails if another size differs, a part is empty, or the tensors
    have no such axis.
    """
    computed = ComputedAxis(op, axis, op.rank(parts[0]))
    sizes = [op.add(ShapeOf, part) for part in parts]
    fits, total = computed.exists, sizes[0]
    for other in sizes[1:]:
        fits = op.add(And, fits, op.add(Or, computed.is_axis, op.add(Equal, other, sizes[0])))
        total = op.add(Add, total, other)
    matrices = []
    for part, size in zip(op.add_all(Assert, fits, parts), sizes, strict=True):
        shape = op.add(Concat, parts=[computed.size_before(size), computed.size_from(size)], axis=0)
        matrices.append(op.add(Reshape, part, shape))
    matrix = op.add(Concat, parts=matrices, axis=1)
    op.make(Reshape, matrix, op.add(Where, computed.is_axis, total, sizes[0]))


@imports("stack")
def stack(op: Context) -> None:
    parts = op.inputs("X")
    op.make(Stack, parts, op.integer("axis", 0), output="Y")
    if all(part.type.shape == () for part in parts):
        op.record_stack(parts, "Y")


@imports("unstack")
def unstack(op: Context) -> None:
    op.make(Unstack, op.input(), op.integer("axis", 0), op.count("Y"), output="Y")


@imports("split")
def split(op: Context) -> None:
    """Parts of an axis; if its size is unknown, each part is a slice."""
    x, axis = op.input(), op.integer("axis", 0, "AxisTensor")
    sections = op.integers("sections", (), "SectionsTensorList")
    if sections.count(-1) > 1:
        raise ModelError(f"sections: {list(sections)} have several unknown sizes")
    size = _size(op, axis)
    if size is None:
        _slice_sections(op, sections or _equal_sections(op, axis), axis)
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
    """Compute the size of equal parts, one for each output."""
    count = op.count()
    if op.integer("num") != count or not count:
        raise ModelError(f"num: {op.integer('num')} parts are {count} outputs")
    return op.add(FloorDiv, ragged.size(op, op.input(), axis), np.int64(count))


def _slice_sections(op: Context, sections: tuple[int, ...] | Operand, axis: int) -> None:
    """Set the outputs to slices of an axis of unknown size: equal parts, or one of open size."""
    x, results = op.input(), op.output_names()
    if not isinstance(sections, Operand) and len(sections) != len(results):
        raise ModelError(f"sections: {list(sections)} are not as many as the outputs")
    for index, result in enumerate(results):
        bounds: Sequence[object]
        if isinstance(sections, Operand):
            numbers = (np.int64(index), np.int64(index + 1))
            starts = (op.add(Mul, sections, number) for number in numbers)
            bounds = [op.add(Reshape, start, (1,)) for start in starts]
        else:
            bounds = _bounds(sections, index)
        op.values.define(result, op.add(Slice, x, (axis,), *bounds))


def _bounds(sections: tuple[int, ...], index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the slice bounds of a section, negative if it comes after the one of open size."""
    open_index = sections.index(-1) if -1 in sections else len(sections)
    if index <= open_index:
        start = sum(sections[:index])
        end = start + sections[index]
    else:
        start, end = -sum(sections[index:]), -sum(sections[index + 1 :])
    if index == open_index:
        end = -sum(sections[index + 1 :])
    at_end = end == 0 and (index >= open_index)
    return (start,), (_END if at_end else end,)


def _size(op: Context, axis: int) -> int | None:
    """Return the size of an axis; `None` if it is unknown."""
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
    """Import `partial_concat`: the concatenation of a range of columns of all inputs."""
    op.make(Concat, parts=partial_columns(op), axis=1)


def partial_columns(op: Context) -> Sequence[Operand]:
    """Return `length` columns of each input from `start_index` on; all if `length` is negative."""
    start, count = op.integer("start_index", 0), op.integer("length", -1)
    end = _END if count < 0 else start + count
    if start < 0 <= start + count:
        end = _END
    return [op.add(Slice, part, (1,), (start,), (end,)) for part in op.inputs("X")]
