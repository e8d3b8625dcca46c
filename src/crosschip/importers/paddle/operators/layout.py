"""Operators that change a tensor's shape or the order of its elements."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.layout import (
    Expand,
    Flatten,
    Reshape,
    ShapeOf,
    Slice,
    Squeeze,
    Transpose,
    Unsqueeze,
)


@imports("reshape2")
def reshape2(op: Context) -> None:
    """Where only one size is computed, it follows from the others, and the shape is constant."""
    slots = ("shape", "ShapeTensor", "Shape")
    entries = op.entries(*slots)
    if entries is None or -1 in entries or entries.count(None) > 1:
        op.make(Reshape, op.input(), op.integers_or_tensor(*slots))
    else:
        op.make(Reshape, op.input(), tuple(-1 if entry is None else entry for entry in entries))


@imports("transpose2")
def transpose2(op: Context) -> None:
    op.make(Transpose, op.input(), op.integers("axis"))


@imports("flatten_contiguous_range")
def flatten_contiguous_range(op: Context) -> None:
    op.make(Flatten, op.input(), op.integer("start_axis", 1), op.integer("stop_axis", -1))


@imports("squeeze2")
def squeeze2(op: Context) -> None:
    """An axis of another size than 1 is left as it is, even if it is named."""
    x, axes = op.input(), op.integers("axes", ())
    removed = tuple(axis for axis in axes if not _is_longer(x, axis))
    if axes and not removed:
        op.define(x)
    else:
        op.make(Squeeze, x, removed)


def _is_longer(x: Operand, axis: int) -> bool:
    """Whether an axis, if there is such an axis, is known to have another size than 1."""
    shape = x.type.shape
    if shape is None or not -len(shape) <= axis < len(shape):
        return False
    return isinstance(shape[axis], int) and shape[axis] != 1


@imports("unsqueeze2")
def unsqueeze2(op: Context) -> None:
    """Paddle inserts the axes one after the other, each where it is named at that moment."""
    shape = op.input().type.shape
    axes = op.integers("axes", None, "AxesTensor", "AxesTensorList")
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


@imports("expand_v2")
def expand_v2(op: Context) -> None:
    op.make(Expand, op.input(), op.integers_or_tensor("shape", "Shape", "expand_shapes_tensor"))


@imports("slice")
def slice(op: Context) -> None:
    removed = op.integers("decrease_axis", ())
    arguments = (
        op.input("Input"),
        op.integers("axes"),
        op.integers_or_tensor("starts", "StartsTensor", "StartsTensorList"),
        op.integers_or_tensor("ends", "EndsTensor", "EndsTensorList"),
    )
    if removed:
        op.make(Squeeze, op.add(Slice, *arguments), removed)
    else:
        op.make(Slice, *arguments)


@imports("shape")
def shape(op: Context) -> None:
    op.make(ShapeOf, op.input("Input"), ElementType.INT32)


@imports("shape64")
def shape64(op: Context) -> None:
    op.make(ShapeOf, op.input("Input"), ElementType.INT64)
