"""Operators that change a tensor's shape or the order of its elements."""

from __future__ import annotations

from typing import Any

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.operators.images import Images
from crosschip.importers.paddle.table import imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.blocks import ChannelShuffle, DepthOrder, DepthToSpace
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.rearranging import Trilu


@imports("reshape", "reshape2")
def reshape(op: Context) -> None:
    """Where only one size is computed, it follows from the others, and the shape is constant."""
    slots = ("shape", "ShapeTensor", "Shape")
    entries = op.entries(*slots)
    if entries is None or -1 in entries or entries.count(None) > 1:
        op.make(Reshape, op.input(), op.integers_or_tensor(*slots))
    else:
        op.make(Reshape, op.input(), tuple(-1 if entry is None else entry for entry in entries))


@imports("transpose", "transpose2")
def transpose(op: Context) -> None:
    axes = op.integers("axis")
    if any(not -len(axes) <= axis < len(axes) for axis in axes):
        raise ModelError(f"axis: {list(axes)} are not the axes of a tensor")
    op.make(Transpose, op.input(), tuple(axis % len(axes) for axis in axes))


@imports("flatten_contiguous_range")
def flatten_contiguous_range(op: Context) -> None:
    op.make(Flatten, op.input(), op.integer("start_axis", 1), op.integer("stop_axis", -1))


@imports("flatten", "flatten2")
def flatten(op: Context) -> None:
    op.make(*as_matrix(op, op.input(), op.integer("axis", 1)))


def as_matrix(op: Context, x: Operand, axis: int) -> tuple[Any, ...]:
    """The operation, and its arguments, that makes a matrix of a tensor.

    The axes before `axis` become its rows and the others its columns.
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


@imports("unsqueeze", "unsqueeze2")
def unsqueeze(op: Context) -> None:
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


@imports("shape")
def shape(op: Context) -> None:
    op.make(ShapeOf, op.input("Input"), ElementType.INT32)


@imports("shape64")
def shape64(op: Context) -> None:
    op.make(ShapeOf, op.input("Input"), ElementType.INT64)


@imports("shuffle_channel")
def shuffle_channel(op: Context) -> None:
    op.make(ChannelShuffle, op.input(), op.integer("group"))


@imports("pixel_shuffle")
def pixel_shuffle(op: Context) -> None:
    images = Images(op)
    size = op.integer("upscale_factor", 1)
    images.make(DepthToSpace, images.input("X"), size, DepthOrder.CRD)


@imports("tril_triu")
def tril_triu(op: Context) -> None:
    op.make(Trilu, op.input(), op.integer("diagonal", 0), not op.flag("lower", True))


@imports("pd_op.triu")
def triu(op: Context) -> None:
    op.make(Trilu, op.input(), op.integer("diagonal", 0), True)
