"""Operators that create tensors from attributes, and those that return shapes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from crosschip.importers.paddle import ragged
from crosschip.importers.paddle.context import Context, imports
from crosschip.importers.paddle.values import MAX_ELEMENTS
from crosschip.ir import Array, ElementType, ModelError, Operand
from crosschip.ir.types import INTEGERS, MAX_RANK
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.comparison import Equal, Less, LessEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, Range, ShapeOf
from crosschip.ops.standard.indexing import GatherND
from crosschip.ops.standard.joining import Concat, Stack
from crosschip.ops.standard.layout import Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.padding import Pad
from crosschip.ops.standard.reduction import ReduceMax, ReduceProd
from crosschip.ops.standard.slicing import Slice

Number = int | float

_VALUES = {
    ElementType.BOOL: "bool_values",
    ElementType.INT8: "int8_values",
    ElementType.INT32: "int32_values",
    ElementType.INT64: "int64_values",
    ElementType.FLOAT32: "fp32_values",
    ElementType.FLOAT64: "fp64_values",
}
"""The attribute in Paddle 2 with the elements of each type."""
_MAX_COUNT = 2**24
"""The maximum number of elements of a constant; only a damaged file has more."""
_INTEGERS = range(-(2**63), 2**64)


@imports("fill_constant")
def fill_constant(op: Context) -> None:
    element_type = op.element_type("dtype") or ElementType.FLOAT32
    shape = op.integers_or_tensor("shape", "ShapeTensor", "ShapeTensorList")
    tensor = op.optional_input("ValueTensor")
    if tensor is not None:
        op.make(Fill, shape, op.as_type(tensor, element_type))
    else:
        fill(op, shape, _number(op), element_type)


def _number(op: Context) -> Number:
    """Return the value, which `str_value` holds if float32 cannot."""
    text = op.text("str_value", "")
    if not text:
        return op.real("value", 0.0)
    try:
        number = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise ModelError(f"str_value: {text!r} is not a number") from None
    if isinstance(number, int) and number not in _INTEGERS:
        raise ModelError(f"str_value: {text} is out of the range of integers")
    return number


@imports("full_int_array")
def full_int_array(op: Context) -> None:
    element_type = op.element_type("dtype") or ElementType.INT64
    op.make_constant(np.array(op.integers("value"), element_type.dtype))


@imports("assign_value")
def assign_value(op: Context) -> None:
    """Import a constant whose elements are in an attribute; Paddle 2 has one attribute per type."""
    op.make_constant(attribute_array(op, op.element_type("dtype") or ElementType.FLOAT32))


def attribute_array(op: Context, element_type: ElementType) -> Array:
    """Return the array whose shape and elements are attributes."""
    names = ("values", *((_VALUES[element_type],) if element_type in _VALUES else ()))
    values = next(filter(None, map(op.numbers, names)), ())
    shape = op.integers("shape")
    if min(shape, default=0) < 0 or math.prod(shape) != len(values):
        raise ModelError(f"shape: {list(shape)} is not that of {len(values)} values")
    return np.array(values).astype(element_type.dtype).reshape(shape)


@imports("fill_any_like")
def fill_any_like(op: Context) -> None:
    x = op.input()
    element_type = op.element_type("dtype") or x.type.element_type
    fill(op, op.shape(x), op.real("value", 0.0), element_type)


@imports("fill_zeros_like")
def fill_zeros_like(op: Context) -> None:
    x = op.input()
    fill(op, op.shape(x), 0, x.type.element_type)


@imports("fill_constant_batch_size_like")
def fill_constant_batch_size_like(op: Context) -> None:
    """Import a tensor filled with a value; one of its sizes is that of an input axis."""
    x, shape = op.input("Input"), op.integers("shape")
    axis, source = op.integer("output_dim_idx", 0), op.integer("input_dim_idx", 0)
    if not 0 <= axis < len(shape) or not 0 <= source < op.rank(x):
        raise ModelError(f"output_dim_idx {axis}, input_dim_idx {source}: there is no such axis")
    before, after = shape[:axis], shape[axis + 1 :]
    sizes = op.shape(x)
    if isinstance(sizes, tuple):
        target: tuple[int, ...] | Operand = (*before, sizes[source], *after)
    else:
        size = op.add(Slice, sizes, (0,), (source,), (source + 1,))
        parts = [_list(op, before), size, _list(op, after)]
        target = op.add(Concat, parts=[part for part in parts if part is not None], axis=0)
    fill(op, target, _number(op), op.element_type("dtype") or ElementType.FLOAT32)


def _list(op: Context, sizes: tuple[int, ...]) -> Operand | None:
    """Return a constant with the sizes; `None` if there are none."""
    return op.constant(np.array(sizes, np.int64), "sizes") if sizes else None


def fill(
    op: Context, shape: tuple[int, ...] | Operand, value: Number, element_type: ElementType
) -> None:
    """Set `Out` to a tensor filled with a value; a short one is a constant."""
    if element_type in INTEGERS and not math.isfinite(value):
        raise ModelError(f"value: {value} is not a value of {element_type}")
    element = np.asarray(value).astype(element_type.dtype)
    is_valid = isinstance(shape, tuple) and len(shape) <= MAX_RANK and min(shape, default=0) >= 0
    if isinstance(shape, tuple) and is_valid and math.prod(shape) <= MAX_ELEMENTS:
        op.make_constant(np.full(shape, element))
    else:
        op.make(Fill, shape, element)


def _arange(op: Context, count: int | Operand) -> Operand:
    """Return the integers from 0 up to a count."""
    if not isinstance(count, Operand):
        if not 0 <= count <= _MAX_COUNT:
            raise ModelError(f"{count}: is not how many numbers there can be")
        return op.constant(np.arange(count, dtype=np.int64), "numbers")
    end = op.add(Reshape, op.as_type(count, ElementType.INT64), ())
    return op.add(Range, np.int64(0), end, np.int64(1))


@imports("one_hot_v2")
def one_hot_v2(op: Context) -> None:
    _one_hot(op, op.input())


@imports("one_hot")
def one_hot(op: Context) -> None:
    """Import `one_hot`: the older form, whose indices have a last axis of size 1."""
    _one_hot(op, op.add(Squeeze, op.input(), (-1,)))


def _one_hot(op: Context, indices: Operand) -> None:
    """Build one-hot rows; a row is 0 if the index is out of range."""
    columns = op.as_type(
        _arange(op, op.integer_or_tensor("depth", -1, "depth_tensor")), indices.type.element_type
    )
    is_hot = op.add(Equal, op.add(Unsqueeze, indices, (-1,)), columns)
    op.make(Cast, is_hot, op.element_type("dtype") or ElementType.FLOAT32)


@imports("sequence_mask")
def sequence_mask(op: Context) -> None:
    """Masks [..., maxlen]: 1 up to each length and then 0; the default maxlen is the maximum."""
    lengths = op.input()
    longest = op.integer_or_tensor("maxlen", -1, "MaxLenTensor")
    if isinstance(longest, Operand):
        longest = op.add(Slice, op.add(Reshape, longest, (-1,)), (0,), (0,), (1,))
    elif longest < 0:
        longest = op.add(ReduceMax, lengths, (), keepdim=False)
    columns = op.as_type(_arange(op, longest), lengths.type.element_type)
    is_inside = op.add(Less, columns, op.add(Unsqueeze, lengths, (-1,)))
    op.make(Cast, is_inside, op.element_type("out_dtype") or ElementType.INT64, output="Y")


@imports("linspace")
def linspace(op: Context) -> None:
    """`start + i * step` in the first half, `stop - (num - 1 - i) * step` in the second.

    Paddle computes in float64.
    """
    start, stop = (
        op.add(Reshape, op.as_type(op.input(slot), ElementType.FLOAT64), ())
        for slot in ("Start", "Stop")
    )
    count = op.integer_or_tensor("num", 1, "Num")
    numbers = op.as_type(_arange(op, count), ElementType.FLOAT64)
    last: float | Operand
    if isinstance(count, Operand):
        scalar = op.add(Reshape, op.as_type(count, ElementType.FLOAT64), ())
        last = op.add(Sub, scalar, 1.0)
    else:
        last = op.constant(np.array(count - 1, np.float64), "last")
    step = op.add(Div, op.add(Sub, stop, start), op.add(Max, last, np.float64(1)))
    forward = op.add(Add, start, op.add(Mul, step, numbers))
    backward = op.add(Sub, stop, op.add(Mul, step, op.add(Sub, last, numbers)))
    is_first = op.add(LessEqual, numbers, op.add(Sub, last, numbers))
    values = op.add(Where, is_first, forward, backward)
    op.make(Cast, values, op.element_type("dtype") or op.input("Start").type.element_type)


@imports("range")
def range_(op: Context) -> None:
    """Import `range`: a range; Paddle 3 states the element type of the result."""
    start, end, step = op.input("Start"), op.input("End"), op.input("Step")
    element_type = op.element_type("dtype") or start.type.element_type
    op.make(Range, *(op.as_type(bound, element_type) for bound in (start, end, step)))


@imports("shape")
def shape(op: Context) -> None:
    op.make(ShapeOf, op.input("Input"), ElementType.INT32)


@imports("shape64")
def shape64(op: Context) -> None:
    op.make(ShapeOf, op.input("Input"), ElementType.INT64)


@imports("size")
def size(op: Context) -> None:
    """Import `size`: the number of elements."""
    sizes = op.add(ShapeOf, op.input("Input"), ElementType.INT64)
    op.make(ReduceProd, sizes, (), keepdim=False)


_SIDES = (("num_rows", None), ("num_columns", -1.0))
"""The size attributes of `eye`, with their defaults."""


def _integral(op: Context, name: str, default: float | None) -> int:
    """Return an integer that Paddle 3 stores as a float."""
    number = op.real(name, default)
    if not number.is_integer():
        raise ModelError(f"{name}: {number} is not an integer")
    return int(number)


@imports("eye")
def eye(op: Context) -> None:
    rows, columns = (_integral(op, name, default) for name, default in _SIDES)
    columns = rows if columns == -1 else columns
    if not 0 <= rows * columns <= _MAX_COUNT or rows < 0:
        raise ModelError(f"num_rows {rows}, num_columns {columns}: is no matrix")
    element_type = op.element_type("dtype") or ElementType.FLOAT32
    op.make_constant(np.eye(rows, columns, dtype=element_type.dtype))


@imports("empty")
def empty(op: Context) -> None:
    """Uninitialized memory, imported as zeros."""
    shape = op.integers_or_tensor("shape", "ShapeTensor", "ShapeTensorList")
    fill(op, shape, 0, op.element_type("dtype") or ElementType.FLOAT32)


@imports("diag_v2")
def diag_v2(op: Context) -> None:
    """Import a matrix with a vector on its diagonal, or the diagonal of a matrix as a vector."""
    x, shift = op.input(), op.integer("offset", 0)
    if op.rank(x) == 2:
        _take_diagonal(op, x, shift)
        return
    count = ragged.size(op, x)
    side = op.add(Add, count, np.int64(abs(shift)))
    numbers = ragged.arange(op, side)
    rows, columns = (op.add(Unsqueeze, numbers, (axis,)) for axis in (1, 0))
    is_on = op.add(Equal, op.add(Sub, columns, rows), np.int64(shift))
    value = np.asarray(op.real("padding_value", 0.0)).astype(x.type.element_type.dtype)
    # The element on the diagonal for each column.
    by_column = op.add(Pad, x, (max(0, shift), max(0, -shift)))
    op.make(Where, is_on, op.add(Unsqueeze, by_column, (0,)), value)


def _take_diagonal(op: Context, x: Operand, shift: int) -> None:
    sizes = [op.add(Reshape, ragged.size(op, x, axis), ()) for axis in range(2)]
    skips = max(0, -shift), max(0, shift)
    lengths = [
        op.add(Sub, size, np.int64(skipped)) for size, skipped in zip(sizes, skips, strict=True)
    ]
    count = op.add(Max, op.add(Min, *lengths), np.int64(0))
    numbers = ragged.arange(op, count)
    indices = [op.add(Add, numbers, np.int64(skipped)) for skipped in skips]
    op.make(GatherND, x, op.add(Stack, indices, 1))


@imports("tril_indices")
def tril_indices(op: Context) -> None:
    """Import `tril_indices`: the row and column indices of the elements on or below a diagonal."""
    _make_indices(op, np.tril, op.integer("rows"), op.integer("cols"))


@imports("triu_indices")
def triu_indices(op: Context) -> None:
    """Import `triu_indices`: the row and column indices of the elements on or above a diagonal."""
    _make_indices(op, np.triu, op.integer("row"), op.integer("col"))


def _make_indices(op: Context, part: Callable[..., Array], rows: int, columns: int) -> None:
    if not 0 <= rows * columns <= _MAX_COUNT or rows < 0:
        raise ModelError(f"rows {rows}, columns {columns}: is no matrix")
    element_type = op.element_type("dtype") or ElementType.INT64
    coordinates = np.nonzero(part(np.ones((rows, columns)), op.integer("offset", 0)))
    indices = op.constant(np.stack(coordinates).astype(element_type.dtype), "indices")
    op.define(indices, "out")
