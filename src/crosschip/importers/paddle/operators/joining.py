"""Operators that put tensors together or take them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import Array, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack
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
    axis = op.integer("axis", 0, "AxisTensor")
    sections = op.integers("sections", (), "SectionsTensorList")
    if -1 in sections:
        rest = _size(op, axis) - sum(size for size in sections if size != -1)
        sections = tuple(rest if size == -1 else size for size in sections)
    if not sections:
        size, count = _size(op, axis), op.count()
        if op.integer("num") != count or not count or size % count:
            raise ModelError(f"num: {size} cannot be split into {op.integer('num')} equal parts")
        sections = (size // count,) * count
    op.make(Split, op.input(), axis, sections)


def _size(op: Context, axis: int) -> int:
    shape = op.input().type.shape
    if shape is not None and not -len(shape) <= axis < len(shape):
        raise ModelError(f"axis: {axis} is not an axis of {op.input().type}")
    size = None if shape is None else shape[axis]
    if not isinstance(size, int):
        raise UnsupportedError(f"the size of axis {axis} of {op.input().type} must be known")
    return size


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


@imports("write_to_array")
def write_to_array(op: Context) -> None:
    """A tensor put into an array of tensors, at a place that is known."""
    (array,) = op.results()
    op.values.arrays[array] = _written(op, op.values.arrays.get(array, ()))


@imports("pd_op.array_write_")
def array_write(op: Context) -> None:
    """The same in Paddle 3, which gives the array a second name."""
    written = _written(op, _array(op, "Array"))
    for array in (*op.variables("Array"), *op.results()):
        op.values.arrays[array] = written


def _written(op: Context, array: Sequence[Operand]) -> tuple[Operand, ...]:
    held, place = list(array), _place(op)
    if not 0 <= place <= len(held):
        raise UnsupportedError(f"I: {place} is beyond the array, which has {len(held)} tensors")
    held[place : place + 1] = [op.input()]
    return tuple(held)


@imports("read_from_array")
def read_from_array(op: Context) -> None:
    held, place = _array(op), _place(op)
    if not 0 <= place < len(held):
        raise ModelError(f"I: {place} is beyond the array, which has {len(held)} tensors")
    op.define(held[place])


@imports("lod_array_length")
def lod_array_length(op: Context) -> None:
    op.make_constant(np.array([len(_array(op))], np.int64))


@imports("tensor_array_to_tensor")
def tensor_array_to_tensor(op: Context) -> None:
    """The tensors of an array as one, and their sizes on the axis."""
    held, axis = _array(op), op.integer("axis", 0)
    if op.flag("use_stack", False):
        op.make(Stack, held, axis)
        sizes = [op.constant(np.ones(1, np.int32), "one") for _ in held]
    else:
        op.make(Concat, parts=held, axis=axis)
        shapes = [op.add(ShapeOf, part, ElementType.INT32) for part in held]
        place = axis % op.rank(held[0])
        sizes = [op.add(Slice, shape, (0,), (place,), (place + 1,)) for shape in shapes]
    if op.count("OutIndex"):
        op.make(Concat, parts=sizes, axis=0, output="OutIndex")


@imports("pd_op.create_array")
def create_array(op: Context) -> None:
    (array,) = op.results()
    op.values.arrays[array] = ()


def _array(op: Context, slot: str = "X") -> Sequence[Operand]:
    """The tensors of the array that an operator reads."""
    (array,) = op.variables(slot)
    if array not in op.values.arrays:
        raise UnsupportedError(
            f"{slot}: {array!r} is an array that control flow fills; only one that is filled "
            f"outside of loops and branches is expressed. Write to a tensor instead, and export"
        )
    return op.values.arrays[array]


def _place(op: Context) -> int:
    place = op.input("I").value
    if place is None:
        raise UnsupportedError("I: the place in an array is computed when the model runs")
    return int(place.item())
