"""Operators that change shapes or permute axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.arithmetic import Mod
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.slicing import Slice


@imports("reshape", "reshape2")
def reshape(op: Context) -> None:
    """Import a reshape; if only one size is computed, it becomes -1 in a constant shape."""
    slots = ("shape", "ShapeTensor", "Shape")
    entries = op.partial_integers(*slots)
    if entries is None or -1 in entries or entries.count(None) > 1:
        op.make(Reshape, op.input(), op.integers_or_tensor(*slots))
    else:
        op.make(Reshape, op.input(), tuple(-1 if entry is None else entry for entry in entries))
    _make_xshape(op)


def _make_xshape(op: Context) -> None:
    """Set `XShape`, an empty tensor [0, *shape of the input] for training, if it is read."""
    if not op.is_read("XShape"):
        return
    x = op.input()
    zero, sizes = np.zeros((), x.type.element_type.dtype), op.shape(x)
    if isinstance(sizes, tuple):
        op.define(op.constant(np.zeros((0, *sizes), zero.dtype), "XShape"), "XShape")
    else:
        none = op.constant(np.zeros(1, sizes.type.element_type.dtype), "XShape.none")
        op.make(Fill, op.add(Concat, parts=[none, sizes], axis=0), zero, output="XShape")


@imports("transpose", "transpose2")
def transpose(op: Context) -> None:
    axes = op.integers("axis")
    if any(not -len(axes) <= axis < len(axes) for axis in axes):
        raise ModelError(f"axis: {list(axes)} are not the axes of a tensor")
    op.make(Transpose, op.input(), tuple(axis % len(axes) for axis in axes))
    _make_xshape(op)


@imports("flatten_contiguous_range")
def flatten_contiguous_range(op: Context) -> None:
    op.make(Flatten, op.input(), op.integer("start_axis", 1), op.integer("stop_axis", -1))
    _make_xshape(op)


@imports("flatten", "flatten2")
def flatten(op: Context) -> None:
    """Import `flatten`: the input as a matrix; a scalar becomes [1]."""
    x = op.input()
    if x.type.shape == ():
        op.make(Reshape, x, (1,))
    else:
        op.make(*as_matrix(op, x, op.integer("axis", 1)))
    _make_xshape(op)


def as_matrix(op: Context, x: Operand, axis: int) -> tuple[Any, ...]:
    """Return the operator and its arguments that reshape a tensor to a matrix.

    The axes before `axis` are flattened to the rows, and the others to the columns.
    """
    rank = op.rank(x)
    if not -rank <= axis <= rank:
        raise ModelError(f"axis: {axis} is not an axis of {x.type}")
    axis = axis + rank if axis < 0 else axis
    if axis in (0, rank):
        return Reshape, x, (1, -1) if axis == 0 else (-1, 1)
    return Flatten, op.add(Flatten, x, axis, rank - 1), 0, axis - 1


@imports("squeeze", "squeeze2")
def squeeze(op: Context) -> None:
    """Import `squeeze`: the input without axes of size 1; listed axes of other sizes are kept."""
    x, axes = op.input(), op.integers("axes", ())
    is_scalar = x.type.shape == ()
    removed = () if is_scalar else tuple(axis for axis in axes if not _is_not_one(x, axis))
    if axes and not removed:
        op.define(x)
    else:
        op.make(Squeeze, x, removed)
    _make_xshape(op)


def _is_not_one(x: Operand, axis: int) -> bool:
    """Return whether an axis exists and is known to have a size other than 1."""
    shape = x.type.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return False
    return isinstance(shape[axis], int) and shape[axis] != 1


@imports("unsqueeze", "unsqueeze2")
def unsqueeze(op: Context) -> None:
    """Insert axes of size 1, one by one, each at an axis of the shape so far."""
    _make_xshape(op)
    shape = op.input().type.shape
    axes = op.integers_or_tensor("axes", "AxesTensor", "AxesTensorList")
    if isinstance(axes, Operand):
        op.make(Reshape, op.input(), _unsqueezed_shape(op, axes))
        return
    if shape is None:
        if len(axes) > 1:
            raise UnsupportedError(f"axes {list(axes)} of an input with unknown axes")
        op.make(Unsqueeze, op.input(), axes)
        return
    is_new = [False] * len(shape)
    for axis in axes:
        if not -len(is_new) - 1 <= axis <= len(is_new):
            raise ModelError(f"axes: {list(axes)} do not fit an input of {len(shape)} axes")
        is_new.insert(axis % (len(is_new) + 1), True)
    op.make(Unsqueeze, op.input(), tuple(axis for axis, new in enumerate(is_new) if new))


def _unsqueezed_shape(op: Context, axes: Operand) -> Operand:
    """Compute the shape after inserting computed axes of size 1 one by one."""
    x = op.input()
    sizes, rank = op.add(ShapeOf, x), op.rank(x)
    one = op.constant(np.ones(1, np.int64), "one")
    (count,) = axes.type.static_shape or (0,)
    for index in range(count):
        axis = op.as_type(op.add(Slice, axes, (0,), (index,), (index + 1,)), ElementType.INT64)
        axis = op.add(Mod, axis, np.int64(rank + index + 1))
        numbers = op.constant(np.arange(rank + index + 1), "numbers")
        before = op.add(Concat, parts=[sizes, one], axis=0)
        after = op.add(Concat, parts=[one, sizes], axis=0)
        rest = op.add(Where, op.add(Equal, numbers, axis), one, after)
        sizes = op.add(Where, op.add(Less, numbers, axis), before, rest)
    return sizes


@imports("expand_v2")
def expand_v2(op: Context) -> None:
    op.make(Expand, op.input(), op.integers_or_tensor("shape", "Shape", "expand_shapes_tensor"))


@imports("expand_as_v2")
def expand_as_v2(op: Context) -> None:
    like = op.optional_input("Y")
    op.make(Expand, op.input(), op.integers("target_shape") if like is None else op.shape(like))
