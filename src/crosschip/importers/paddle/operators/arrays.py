"""Tensor arrays: written at constant indices, or filled by a loop, one tensor in each iteration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.values import LoopArray, StackedArray
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

_END = 2**31 - 1


@imports("pd_op.create_array")
def create_array(op: Context) -> None:
    (array,) = op.output_names()
    op.values.arrays[array] = ()


@imports("write_to_array")
def write_to_array(op: Context) -> None:
    """Write a tensor to an array."""
    (array,) = op.output_names()
    op.values.arrays[array] = _write(op, op.values.arrays.get(array, ()))


@imports("pd_op.array_write_")
def array_write(op: Context) -> None:
    """Write a tensor to an array, which has a second variable in Paddle 3."""
    tensors = _write(op, _array(op, "Array"))
    for array in (*op.variables("Array"), *op.output_names()):
        op.values.arrays[array] = tensors


def _write(
    op: Context, array: Sequence[Operand] | LoopArray | StackedArray
) -> tuple[Operand, ...] | LoopArray:
    if isinstance(array, LoopArray):
        _append(op, array)
        return array
    tensors, index = list(_elements(array)), _constant_index(op)
    if not 0 <= index <= len(tensors):
        raise UnsupportedError(f"I: {index} is beyond the array, which has {len(tensors)} tensors")
    tensors[index : index + 1] = [op.input()]
    return tuple(tensors)


def _append(op: Context, array: LoopArray) -> None:
    """Append a tensor in an iteration of a loop."""
    if array.appended is not None:
        raise UnsupportedError("writes to an array twice in one iteration of a loop")
    x, index = op.input(), op.input("I")
    if index not in array.lengths:
        index = op.as_type(op.add(Reshape, index, ()), ElementType.INT64)
        x = op.add(Assert, op.add(Equal, index, array.iteration), [x])
    array.appended = x


@imports("read_from_array")
def read_from_array(op: Context) -> None:
    array = _array(op)
    if isinstance(array, StackedArray):
        op.make(Gather, array.tensors, op.add(Reshape, op.input("I"), ()), 0)
        return
    tensors, index = _elements(array), _constant_index(op)
    if not 0 <= index < len(tensors):
        raise ModelError(f"I: {index} is beyond the array, which has {len(tensors)} tensors")
    op.define(tensors[index])


@imports("lod_array_length")
def lod_array_length(op: Context) -> None:
    array = _array(op)
    if isinstance(array, StackedArray):
        op.define(_length(op, array))
    elif isinstance(array, LoopArray):
        length = op.add(Reshape, array.iteration, (1,))
        if array.appended is None:
            array.lengths.add(length)
        else:
            raise UnsupportedError("reads the length of an array written in the same iteration")
        op.define(length)
    else:
        op.make_constant(np.array([len(array)], np.int64))


@imports("tensor_array_to_tensor")
def tensor_array_to_tensor(op: Context) -> None:
    """Concatenate or stack the tensors of an array; `OutIndex` has their sizes on the axis."""
    array, axis, stacks = _array(op), op.integer("axis", 0), op.flag("use_stack", False)
    if isinstance(array, StackedArray):
        _concat_stacked(op, array, axis, stacks)
        return
    tensors = _elements(array)
    if stacks:
        op.make(Stack, tensors, axis)
        sizes = [op.constant(np.ones(1, np.int32), "one") for _ in tensors]
    else:
        op.make(Concat, parts=tensors, axis=axis)
        shapes = [op.add(ShapeOf, part, ElementType.INT32) for part in tensors]
        index = axis % op.rank(tensors[0])
        sizes = [op.add(Slice, shape, (0,), (index,), (index + 1,)) for shape in shapes]
    if op.count("OutIndex"):
        op.make(Concat, parts=sizes, axis=0, output="OutIndex")


def _concat_stacked(op: Context, array: StackedArray, axis: int, stacks: bool) -> None:
    """Concatenate or stack on an axis the tensors that a loop has stacked on axis 0."""
    rank = op.rank(array.tensors) - 1
    index = axis % (rank + 1 if stacks else rank)
    order = [*range(1, index + 1), 0, *range(index + 1, rank + 1)]
    size = op.constant(np.ones(1, np.int64), "one")
    transposed = op.add(Transpose, array.tensors, order)
    if stacks:
        op.define(transposed)
    else:
        shape = op.add(ShapeOf, transposed)
        size = op.add(Slice, shape, (0,), (index + 1,), (index + 2,))
        before = op.add(Slice, shape, (0,), (0,), (index,))
        after = op.add(Slice, shape, (0,), (index + 2,), (_END,))
        merged = op.constant(np.array([-1]), "merged")
        op.make(Reshape, transposed, op.add(Concat, parts=[before, merged, after], axis=0))
    if op.is_read("OutIndex"):
        ones = op.add(Fill, _length(op, array), np.int64(1))
        op.make(Cast, op.add(Mul, ones, size), ElementType.INT32, output="OutIndex")


def _length(op: Context, array: StackedArray) -> Operand:
    return op.add(Slice, op.add(ShapeOf, array.tensors), (0,), (0,), (1,))


def _array(op: Context, slot: str = "X") -> Sequence[Operand] | LoopArray | StackedArray:
    """Return the array that an operator reads."""
    (array,) = op.variables(slot)
    if array not in op.values.arrays:
        raise UnsupportedError(
            f"{slot}: {array!r} is an array that control flow fills; supported are arrays written "
            f"outside of control flow, or once in each iteration of a loop. Write to a tensor "
            f"instead, and export"
        )
    return op.values.arrays[array]


def _elements(array: Sequence[Operand] | LoopArray | StackedArray) -> Sequence[Operand]:
    """Return the tensors of an array that is not filled by a loop."""
    if isinstance(array, LoopArray | StackedArray):
        raise UnsupportedError(
            "an array that a loop fills is read in the loop, or written outside of it; only the "
            "loop may write it, and the array can be read as a tensor after the loop"
        )
    return array


def _constant_index(op: Context) -> int:
    index = op.input("I").value
    if index is None:
        raise UnsupportedError("I: the index in an array is computed when the model runs")
    return int(index.item())
