"""Operators that pick from a tensor by indices."""

from __future__ import annotations

import math

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.operators.creation import written
from crosschip.importers.paddle.table import imports
from crosschip.ir import Array, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Add, Div, Mul, Sub
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.conversion import BitCast
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
)
from crosschip.ops.standard.layout import Expand, Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.logical import BitShift, BitwiseAnd, Direction, Where
from crosschip.ops.standard.slicing import Slice

_MOST_PLACES = 2**24
"""In how large a tensor a part can be written over; its places are listed."""


@imports("gather")
def gather(op: Context) -> None:
    """Indices [N, 1] are a list as well."""
    indices = op.input("Index")
    if indices.type.shape is not None and len(indices.type.shape) == 2:
        indices = op.add(Squeeze, indices, (1,))
    op.make(Gather, op.input(), indices, op.integer("axis", 0, "Axis"))


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
    """The older form: indices have a last axis of size 1."""
    _look_up(op, op.add(Squeeze, op.input("Ids"), (-1,)))


def _look_up(op: Context, indices: Operand) -> None:
    """The rows of a table; all 0 for the index that stands for padding, if one does."""
    table, padding = op.input("W"), op.integer("padding_idx", -1)
    if padding == -1:
        op.make(Gather, table, indices, 0)
        return
    found = op.add(Equal, op.as_type(indices, ElementType.INT64), np.int64(padding))
    is_padding = op.add(Unsqueeze, found, (-1,))
    zero = op.constant(np.zeros((), table.type.element_type.dtype), f"{table.name}.padding")
    op.make(Where, is_padding, zero, op.add(Gather, table, indices, 0))


@imports("lookup_table_dequant")
def lookup_table_dequant(op: Context) -> None:
    """Rows of bytes, four in each float32, which stand for reals from the row's least to greatest.

    The first two numbers of a row are these bounds.
    """
    table, padding = op.input("W"), op.integer("padding_idx", -1)
    indices = op.add(Squeeze, op.input("Ids"), (-1,))
    rows = op.add(Gather, table, indices, 0)
    low, high = (op.add(Slice, rows, (-1,), (place,), (place + 1,)) for place in range(2))
    words = op.add(BitCast, op.add(Slice, rows, (-1,), (2,), (2**31 - 1,)), ElementType.UINT32)
    places = np.arange(0, 32, 8, dtype=np.uint32)
    shifted = op.add(BitShift, op.add(Unsqueeze, words, (-1,)), places, Direction.RIGHT)
    bytes_ = op.as_type(op.add(BitwiseAnd, shifted, np.uint32(255)), table.type.element_type)
    flat = op.add(Reshape, bytes_, (0,) * op.rank(indices) + (-1,))
    step = op.add(Div, op.add(Sub, high, low), 256.0)
    made = op.add(Add, op.add(Mul, flat, step), low)
    if padding == -1:
        op.define(made)
        return
    is_padding = op.add(Equal, op.as_type(indices, ElementType.INT64), np.int64(padding))
    zero = table.type.element_type.dtype.type(0)
    op.make(Where, op.add(Unsqueeze, is_padding, (-1,)), zero, made)


@imports("scatter")
def scatter(op: Context) -> None:
    """Rows written over those of the input, or added up where they go."""
    x, updates, places = op.input(), op.input("Updates"), op.input("Ids")
    if op.rank(places) == 1:
        places = op.add(Unsqueeze, places, (1,))
    if op.flag("overwrite", True):
        op.make(ScatterND, x, places, updates)
        return
    zero = np.zeros((), updates.type.element_type.dtype)
    cleared = op.add(ScatterND, x, places, op.add(Fill, op.shape(updates), zero))
    op.make(ScatterND, cleared, places, updates, reduction=Scatter.ADD)


@imports("set_value")
def set_value(op: Context) -> None:
    """The input, with a value written over a box of it, in which steps are at least 1."""
    x = op.input("Input")
    places = _box(op, x)
    value = op.optional_input("ValueTensor")
    if value is None:
        value = op.constant(written(op, x.type.element_type), "value")
    value = op.add(Expand, op.as_type(value, x.type.element_type), places.shape)
    if places.size == math.prod(x.type.static_shape or ()):
        op.make(Reshape, value, x.type.static_shape)
        return
    flat, values = op.add(Reshape, x, (-1,)), op.add(Reshape, value, (-1,))
    indices = op.constant(places.ravel(), "places")
    changed = op.add(ScatterElements, flat, indices, values, 0)
    op.make(Reshape, changed, x.type.static_shape)


def _box(op: Context, x: Operand) -> Array:
    """The places of a box's elements in the flattened tensor, without the axes that are removed."""
    sizes, axes = x.type.static_shape, op.integers("axes")
    if sizes is None or math.prod(sizes) > _MOST_PLACES or op.integers("none_axes", ()):
        raise UnsupportedError(f"a part of {x.type}: its sizes must be known, and no axes be added")
    starts = op.integers("starts", None, "StartsTensorList")
    ends = op.integers("ends", None, "EndsTensorList")
    steps = op.integers("steps", None, "StepsTensorList")
    if not len(axes) == len(starts) == len(ends) == len(steps):
        raise ModelError("axes, starts, ends and steps: must be as many")
    if min(steps, default=1) < 1:
        raise UnsupportedError(f"steps {list(steps)}: only positive ones are expressed")
    parts = [slice(None)] * len(sizes)
    for axis, *bounds in zip(axes, starts, ends, steps, strict=True):
        if not 0 <= axis < len(sizes):
            raise ModelError(f"axes: {axis} is not an axis of {x.type}")
        parts[axis] = slice(*bounds)
    places = np.arange(math.prod(sizes)).reshape(sizes)[tuple(parts)]
    removed = op.integers("decrease_axes", ())
    if any(not 0 <= axis < len(sizes) or places.shape[axis] != 1 for axis in removed):
        raise ModelError(f"decrease_axes: {list(removed)} are not axes of size 1")
    return np.atleast_1d(places.squeeze(removed))
