"""Arrays of tensors: filled at places that are known, or by a loop, one tensor each time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.values import Appended, Stacked
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Stack
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.slicing import Slice

_TO_END = 2**31 - 1


@imports("pd_op.create_array")
def create_array(op: Context) -> None:
    (array,) = op.results()
    op.values.arrays[array] = ()


@imports("write_to_array")
def write_to_array(op: Context) -> None:
    """A tensor put into an array of tensors."""
    (array,) = op.results()
    op.values.arrays[array] = _written(op, op.values.arrays.get(array, ()))


@imports("pd_op.array_write_")
def array_write(op: Context) -> None:
    """The same in Paddle 3, which gives the array a second name."""
    written = _written(op, _array(op, "Array"))
    for array in (*op.variables("Array"), *op.results()):
        op.values.arrays[array] = written


def _written(
    op: Context, array: Sequence[Operand] | Appended | Stacked
) -> tuple[Operand, ...] | Appended:
    if isinstance(array, Appended):
        _append(op, array)
        return array
    held, place = list(_listed(array)), _place(op)
    if not 0 <= place <= len(held):
        raise UnsupportedError(f"I: {place} is beyond the array, which has {len(held)} tensors")
    held[place : place + 1] = [op.input()]
    return tuple(held)


def _append(op: Context, array: Appended) -> None:
    """Let a tensor be what this run of a loop's body adds."""
    if array.added is not None:
        raise UnsupportedError("writes to an array a second time in one run of a loop's body")
    x, place = op.input(), op.input("I")
    if place not in array.lengths:
        place = op.as_type(op.add(Reshape, place, ()), ElementType.INT64)
        x = op.add(Assert, op.add(Equal, place, array.iteration), [x])
    array.added = x


@imports("read_from_array")
def read_from_array(op: Context) -> None:
    array = _array(op)
    if isinstance(array, Stacked):
        op.make(Gather, array.tensors, op.add(Reshape, op.input("I"), ()), 0)
        return
    held, place = _listed(array), _place(op)
    if not 0 <= place < len(held):
        raise ModelError(f"I: {place} is beyond the array, which has {len(held)} tensors")
    op.define(held[place])


@imports("lod_array_length")
def lod_array_length(op: Context) -> None:
    array = _array(op)
    if isinstance(array, Stacked):
        op.define(_count(op, array))
    elif isinstance(array, Appended):
        length = op.add(Reshape, array.iteration, (1,))
        if array.added is None:
            array.lengths.add(length)
        else:
            raise UnsupportedError("the length of an array that this run has written to")
        op.define(length)
    else:
        op.make_constant(np.array([len(array)], np.int64))


@imports("tensor_array_to_tensor")
def tensor_array_to_tensor(op: Context) -> None:
    """The tensors of an array as one, and their sizes on the axis."""
    array, axis, stacks = _array(op), op.integer("axis", 0), op.flag("use_stack", False)
    if isinstance(array, Stacked):
        _as_one(op, array, axis, stacks)
        return
    held = _listed(array)
    if stacks:
        op.make(Stack, held, axis)
        sizes = [op.constant(np.ones(1, np.int32), "one") for _ in held]
    else:
        op.make(Concat, parts=held, axis=axis)
        shapes = [op.add(ShapeOf, part, ElementType.INT32) for part in held]
        place = axis % op.rank(held[0])
        sizes = [op.add(Slice, shape, (0,), (place,), (place + 1,)) for shape in shapes]
    if op.count("OutIndex"):
        op.make(Concat, parts=sizes, axis=0, output="OutIndex")


def _as_one(op: Context, array: Stacked, axis: int, stacks: bool) -> None:
    """Make one tensor of those that a loop has stacked on a first axis."""
    rank = op.rank(array.tensors) - 1
    place = axis % (rank + 1 if stacks else rank)
    order = [*range(1, place + 1), 0, *range(place + 1, rank + 1)]
    size = op.constant(np.ones(1, np.int64), "one")
    moved = op.add(Transpose, array.tensors, order)
    if stacks:
        op.define(moved)
    else:
        shape = op.add(ShapeOf, moved)
        size = op.add(Slice, shape, (0,), (place + 1,), (place + 2,))
        around = [((0,), (place,)), ((place + 2,), (_TO_END,))]
        before, after = (op.add(Slice, shape, (0,), *bounds) for bounds in around)
        both = op.constant(np.array([-1]), "both")
        op.make(Reshape, moved, op.add(Concat, parts=[before, both, after], axis=0))
    if op.is_read("OutIndex"):
        ones = op.add(Fill, _count(op, array), np.int64(1))
        op.make(Cast, op.add(Mul, ones, size), ElementType.INT32, output="OutIndex")


def _count(op: Context, array: Stacked) -> Operand:
    return op.add(Slice, op.add(ShapeOf, array.tensors), (0,), (0,), (1,))


def _array(op: Context, slot: str = "X") -> Sequence[Operand] | Appended | Stacked:
    """The array that an operator reads."""
    (array,) = op.variables(slot)
    if array not in op.values.arrays:
        raise UnsupportedError(
            f"{slot}: {array!r} is an array that control flow fills; only one that is filled "
            f"outside of branches, and by a loop once each time, is expressed. Write to a tensor "
            f"instead, and export"
        )
    return op.values.arrays[array]


def _listed(array: Sequence[Operand] | Appended | Stacked) -> Sequence[Operand]:
    """The tensors of an array that is filled at known places alone."""
    if isinstance(array, Appended | Stacked):
        raise UnsupportedError(
            "an array that a loop fills is read inside of it, or written to outside; only the "
            "loop may write to it, and read what it has written as a tensor"
        )
    return array


def _place(op: Context) -> int:
    place = op.input("I").value
    if place is None:
        raise UnsupportedError("I: the place in an array is computed when the model runs")
    return int(place.item())
