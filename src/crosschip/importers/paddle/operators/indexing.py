"""Operators that gather and scatter by indices or masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.axes import ComputedAxis
from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.operators.creation import attribute_array
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Div, FloorDiv, Max, Min, Mod, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Less, NotEqual
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.conversion import BitCast
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
)
from crosschip.ops.standard.joining import Concat, Stack
from crosschip.ops.standard.layout import Expand, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, BitShift, BitwiseAnd, ShiftDirection, Where
from crosschip.ops.standard.searching import NonZero
from crosschip.ops.standard.slicing import Slice


@imports("gather")
def gather(op: Context) -> None:
    """Entries of an axis at indices [N] or [N, 1]."""
    indices, axis = op.input("Index"), op.integer_or_tensor("axis", 0, "Axis")
    if indices.type.shape is not None and len(indices.type.shape) == 2:
        indices = op.add(Squeeze, indices, (1,))
    if isinstance(axis, Operand):
        _gather_along_computed_axis(op, indices, axis)
    else:
        op.make(Gather, op.input(), indices, axis)


def _gather_along_computed_axis(op: Context, indices: Operand, axis: Operand) -> None:
    """Gather at indices [N] along an axis that is computed when the model runs.

    The run fails if the tensor is empty or has no such axis.
    """
    if op.rank(indices) != 1:
        raise UnsupportedError(f"Index: {indices.type} along a computed axis; it must be a list")
    computed = ComputedAxis(op, axis, op.rank(op.input()))
    x = op.add(Assert, computed.exists, [op.input()])
    sizes = op.add(ShapeOf, x)
    box = [computed.size_before(sizes), computed.size(sizes), computed.size_after(sizes)]
    rows = op.add(Gather, op.add(Reshape, x, op.add(Concat, parts=box, axis=0)), indices, 1)
    op.make(Reshape, rows, op.add(Where, computed.is_axis, op.add(ShapeOf, indices), sizes))


@imports("index_select")
def index_select(op: Context) -> None:
    op.make(Gather, op.input(), op.input("Index"), op.integer("dim", 0))


@imports("gather_nd")
def gather_nd(op: Context) -> None:
    op.make(GatherND, op.input(), op.input("Index"))


@imports("scatter_nd_add")
def scatter_nd_add(op: Context) -> None:
    op.make(ScatterND, op.input(), op.input("Index"), op.input("Updates"), reduction=Scatter.ADD)


@imports("take_along_axis")
def take_along_axis(op: Context) -> None:
    arguments = op.input("Input"), op.input("Index"), op.integer("Axis", 0)
    op.make(GatherElements, *arguments, output="Result")


@imports("lookup_table_v2")
def lookup_table_v2(op: Context) -> None:
    _look_up(op, op.input("Ids"))


@imports("lookup_table")
def lookup_table(op: Context) -> None:
    """Import `lookup_table`: the older form, whose indices have a last axis of size 1."""
    _look_up(op, op.add(Squeeze, op.input("Ids"), (-1,)))


def _look_up(op: Context, indices: Operand) -> None:
    """Gather rows of a table; rows are 0 for the padding index, if there is one."""
    table, padding = op.input("W"), op.integer("padding_idx", -1)
    if padding == -1:
        op.make(Gather, table, indices, 0)
        return
    is_equal = op.add(Equal, op.as_type(indices, ElementType.INT64), np.int64(padding))
    is_padding = op.add(Unsqueeze, is_equal, (-1,))
    zero = op.constant(np.zeros((), table.type.element_type.dtype), f"{table.name}.padding")
    op.make(Where, is_padding, zero, op.add(Gather, table, indices, 0))


@imports("lookup_table_dequant")
def lookup_table_dequant(op: Context) -> None:
    """Gather and dequantize rows of a table of bytes; each float32 holds four bytes.

    A byte `b` is `low + b * (high - low) / 256`; a row begins with the float32 `low` and `high`.
    """
    table, padding = op.input("W"), op.integer("padding_idx", -1)
    indices = op.add(Squeeze, op.input("Ids"), (-1,))
    rows = op.add(Gather, table, indices, 0)
    low, high = (op.add(Slice, rows, (-1,), (index,), (index + 1,)) for index in range(2))
    words = op.add(BitCast, op.add(Slice, rows, (-1,), (2,), (2**31 - 1,)), ElementType.UINT32)
    shifts = np.arange(0, 32, 8, dtype=np.uint32)
    shifted = op.add(BitShift, op.add(Unsqueeze, words, (-1,)), shifts, ShiftDirection.RIGHT)
    bytes_ = op.as_type(op.add(BitwiseAnd, shifted, np.uint32(255)), table.type.element_type)
    flat = op.add(Reshape, bytes_, (0,) * op.rank(indices) + (-1,))
    step = op.add(Div, op.add(Sub, high, low), 256.0)
    reals = op.add(Add, op.add(Mul, flat, step), low)
    if padding == -1:
        op.define(reals)
        return
    is_padding = op.add(Equal, op.as_type(indices, ElementType.INT64), np.int64(padding))
    zero = table.type.element_type.dtype.type(0)
    op.make(Where, op.add(Unsqueeze, is_padding, (-1,)), zero, reals)


@imports("scatter")
def scatter(op: Context) -> None:
    """Import `scatter`: the input with rows overwritten by updates, or by the sums of updates."""
    x, updates, indices = op.input(), op.input("Updates"), op.input("Ids")
    if op.rank(indices) == 1:
        indices = op.add(Unsqueeze, indices, (1,))
    if op.flag("overwrite", True):
        op.make(ScatterND, x, indices, updates)
        return
    zero = np.zeros((), updates.type.element_type.dtype)
    cleared = op.add(ScatterND, x, indices, op.add(Fill, op.shape(updates), zero))
    op.make(ScatterND, cleared, indices, updates, reduction=Scatter.ADD)


@imports("set_value")
def set_value(op: Context) -> None:
    """Import `set_value`: the input with a value written to a slice whose steps are positive."""
    x = op.input("Input")
    value = op.optional_input("ValueTensor")
    if value is None:
        value = op.constant(attribute_array(op, x.type.element_type), "value")
    value = op.as_type(value, x.type.element_type)
    axes = op.integers("axes")
    if op.integers("none_axes", ()):
        raise UnsupportedError("none_axes: axes that are added to a part cannot be expressed")
    slots = [(name, f"{name.title()}TensorList") for name in ("starts", "ends", "steps")]
    bounds = [_bounds(op, len(axes), *slot) for slot in slots]
    _check_removed(op, x, axes, bounds)
    value = _align_value(op, value, op.rank(x))
    is_inside: Operand | None = None
    for axis, start, end, step in zip(axes, *bounds, strict=True):
        in_slice, index = _axis_range(op, x, axis, start, end, step)
        shape = value.type.shape or ()
        if shape[axis] != 1:
            last = op.add(Sub, ragged.size(op, value, axis), np.int64(1))
            value = op.add(Gather, value, op.add(Min, index, last), axis)
        in_slice = op.add(
            Reshape, in_slice, tuple(-1 if a == axis else 1 for a in range(op.rank(x)))
        )
        is_inside = in_slice if is_inside is None else op.add(And, is_inside, in_slice)
    if is_inside is None:
        op.make(Expand, value, op.shape(x))
    else:
        op.make(Where, is_inside, value, x)


def _bounds(op: Context, count: int, name: str, slot: str) -> Sequence[int | Operand]:
    """Return the starts, ends or steps, one for each axis; operands if they are computed."""
    static = op.partial_integers(name, slot)
    if static is not None and None not in static:
        numbers = [number for number in static if number is not None]
        if name == "steps" and min(numbers, default=1) < 1:
            raise UnsupportedError(f"steps {numbers}: only positive ones are expressed")
        if len(numbers) != count:
            raise ModelError("axes, starts, ends and steps: must be as many")
        return numbers
    computed = op.integers_or_tensor(name, slot)
    if not isinstance(computed, Operand):
        raise ModelError(f"{name}: is neither constant nor computed")
    computed_list = op.as_type(computed, ElementType.INT64)
    parts = [op.add(Slice, computed_list, (0,), (index,), (index + 1,)) for index in range(count)]
    return [op.add(Reshape, part, ()) for part in parts]


def _check_removed(
    op: Context, x: Operand, axes: Sequence[int], bounds: Sequence[Sequence[int | Operand]]
) -> None:
    """Raise ModelError if an axis to be removed is known to have a size other than 1."""
    removed = op.integers("decrease_axes", ())
    for axis, *slice_bounds in zip(axes, *bounds, strict=True):
        size = (x.type.shape or ())[axis] if 0 <= axis < op.rank(x) else None
        static = [bound for bound in slice_bounds if isinstance(bound, int)]
        if axis not in removed or not isinstance(size, int) or len(static) != len(slice_bounds):
            continue
        if len(range(size)[slice(*static)]) != 1:
            raise ModelError(f"decrease_axes: {list(removed)} are not axes of size 1")
    if not set(removed) <= set(axes):
        raise ModelError(f"decrease_axes: {list(removed)} are not axes of size 1")


def _align_value(op: Context, value: Operand, rank: int) -> Operand:
    """Insert axes of size 1 into the value, to align its axes with those of the input."""
    removed = {axis % rank for axis in op.integers("decrease_axes", ())}
    remaining = [axis for axis in range(rank) if axis not in removed]
    value_rank = op.rank(value)
    if value_rank > len(remaining):
        value = op.add(Squeeze, value, tuple(range(value_rank - len(remaining))))
        value_rank = len(remaining)
    aligned_axes = set(remaining[len(remaining) - value_rank :])
    missing = tuple(axis for axis in range(rank) if axis not in aligned_axes)
    return op.add(Unsqueeze, value, missing) if missing else value


def _axis_range(
    op: Context,
    x: Operand,
    axis: int,
    start: int | Operand,
    end: int | Operand,
    step: int | Operand,
) -> tuple[Operand, Operand]:
    """Return whether each index of an axis is in the slice, and its index in the slice."""
    if not 0 <= axis < op.rank(x):
        raise ModelError(f"axes: {axis} is not an axis of {x.type}")
    size = ragged.size(op, x, axis)
    numbers = ragged.arange(op, size)
    first, last, stride = (
        part if isinstance(part, Operand) else op.constant(np.array(part, np.int64), "bound")
        for part in (start, end, step)
    )
    first, last = (_nonnegative_index(op, part, size) for part in (first, last))
    distance = op.add(Sub, numbers, first)
    is_in_slice = ragged.in_range(op, numbers, first, last)
    is_in_slice = op.add(
        And, is_in_slice, op.add(Equal, op.add(Mod, distance, stride), np.int64(0))
    )
    return is_in_slice, op.add(Max, op.add(FloorDiv, distance, stride), np.int64(0))


def _nonnegative_index(op: Context, bound: Operand, size: Operand) -> Operand:
    """Convert a possibly negative slice bound to one from 0 to the size."""
    is_from_end = op.add(Less, bound, np.int64(0))
    bound = op.add(Where, is_from_end, op.add(Add, bound, size), bound)
    return op.add(Max, op.add(Min, bound, size), np.int64(0))


@imports("index_sample")
def index_sample(op: Context) -> None:
    """Gather the elements of each row at the columns in the same row of the indices."""
    op.make(GatherElements, op.input(), op.input("Index"), 1)


_REDUCTIONS = {
    "assign": Scatter.NONE,
    "add": Scatter.ADD,
    "mul": Scatter.MUL,
    "multiply": Scatter.MUL,
    "amax": Scatter.MAX,
    "amin": Scatter.MIN,
}


@imports("put_along_axis")
def put_along_axis(op: Context) -> None:
    """Import `put_along_axis`: the input with elements scattered along an axis."""
    if not op.flag("Include_self", True):
        raise UnsupportedError("Include_self False: elements are always included; export with True")
    x, indices, value = op.input("Input"), op.input("Index"), op.input("Value")
    updates = op.add(Expand, op.as_type(value, x.type.element_type), op.shape(indices))
    reduction = op.option("Reduce", _REDUCTIONS, "assign")
    arguments = x, indices, updates, op.integer("Axis", 0)
    op.make(ScatterElements, *arguments, reduction=reduction, output="Result")


@imports("masked_select")
def masked_select(op: Context) -> None:
    """Import `masked_select`: the elements where a mask is true, one-dimensional."""
    x, mask = op.input(), op.input("Mask")
    if x.type.shape != mask.type.shape or x.type.static_shape is None:
        sizes = op.add(ShapeOf, op.add(Where, mask, mask, op.add(NotEqual, x, x)))
        x, mask = op.add(Expand, x, sizes), op.add(Expand, mask, sizes)
    indices = op.add(Transpose, op.add(NonZero, mask), (1, 0))
    op.make(GatherND, x, indices, output="Y")


@imports("pd_op.masked_fill")
def masked_fill(op: Context) -> None:
    x = op.input()
    op.make(Where, op.input("Mask"), op.as_type(op.input("Value"), x.type.element_type), x)


@imports("index_put")
def index_put(op: Context) -> None:
    """Import `index_put`: write values at index tensors, one per axis, or where a mask is true."""
    x, indices = op.input("x"), op.inputs("indices")
    if len(indices) == 1 and indices[0].type.element_type is ElementType.BOOL:
        positions = op.add(Transpose, op.add(NonZero, indices[0]), (1, 0))
    else:
        shape = indices[0]
        for other in indices[1:]:
            shape = op.add(Add, shape, op.add(Sub, other, other))
        sizes = op.shape(shape)
        parts = [op.add(Expand, part, sizes) for part in indices]
        positions = op.add(Stack, parts, op.rank(shape))
    current = op.add(GatherND, x, positions)
    value = op.add(Expand, op.as_type(op.input("value"), x.type.element_type), op.shape(current))
    reduction = Scatter.ADD if op.flag("accumulate", False) else Scatter.NONE
    op.make(ScatterND, x, positions, value, reduction=reduction, output="out")


@imports("diagonal")
def diagonal(op: Context) -> None:
    op.define(extract_diagonal(op))


def extract_diagonal(op: Context, *, in_order: bool = False) -> Operand:
    """Return the diagonals over two axes, as the last axis.

    `axis1` has the rows; with `in_order`, the lower of the two axes has the rows.
    """
    x, rank = op.input("Input"), op.rank(op.input("Input"))
    first, second = op.integer("axis1", 0) % rank, op.integer("axis2", 1) % rank
    if in_order:
        first, second = sorted((first, second))
    if first == second:
        raise ModelError(f"axis1, axis2: {first} is named twice")
    shift = op.integer("offset", 0)
    skips = max(0, -shift), max(0, shift)
    sizes = [ragged.size(op, x, axis) for axis in (first, second)]
    lengths = [
        op.add(Sub, size, np.int64(skipped)) for size, skipped in zip(sizes, skips, strict=True)
    ]
    numbers = ragged.arange(op, op.add(Max, op.add(Min, *lengths), np.int64(0)))
    indices = op.add(Stack, [op.add(Add, numbers, np.int64(skipped)) for skipped in skips], 1)
    remaining = [axis for axis in range(rank) if axis not in (first, second)]
    diagonals = op.add(GatherND, op.add(Transpose, x, (first, second, *remaining)), indices)
    return op.add(Transpose, diagonals, (*range(1, rank - 1), 0))


@imports("repeat_interleave")
def repeat_interleave(op: Context) -> None:
    """Import `repeat_interleave`: each entry of an axis, repeated consecutively."""
    x, axis, times = op.input(), op.integer("dim", 0), op.optional_input("RepeatsTensor")
    if times is not None:
        lengths = op.as_type(op.add(Reshape, times, (-1,)), ElementType.INT64)
        if times.type.static_shape == (1,):
            count = op.add(Reshape, ragged.size(op, x, axis), (1,))
            lengths = op.add(Expand, lengths, count)
        op.make(Gather, x, ragged.sequence_positions(op, lengths)[0], axis)
        return
    repeats = op.integer("Repeats")
    if repeats < 1:
        raise ModelError(f"Repeats: {repeats} is not positive")
    numbers = ragged.arange(op, op.add(Mul, ragged.size(op, x, axis), np.int64(repeats)))
    op.make(Gather, x, op.add(FloorDiv, numbers, np.int64(repeats)), axis)


@imports("index_add")
def index_add(op: Context) -> None:
    """Import `index_add`: the input with values added to entries of an axis at indices."""
    x, axis = op.input(), op.integer("axis", 0) % op.rank(op.input())
    order = (axis, *(other for other in range(op.rank(x)) if other != axis))
    indices = op.add(Unsqueeze, op.input("Index"), (1,))
    transposed, updates = (op.add(Transpose, part, order) for part in (x, op.input("AddValue")))
    result = op.add(ScatterND, transposed, indices, updates, reduction=Scatter.ADD)
    op.make(Transpose, result, tuple(order.index(a) for a in range(op.rank(x))))
