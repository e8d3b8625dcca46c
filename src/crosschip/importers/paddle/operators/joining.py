"""Operators that put tensors together or take them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import Array, ModelError, Operand, UnsupportedError
from crosschip.ops.standard.comparison import Equal
from crosschip.ops.standard.control import Assert
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack
from crosschip.ops.standard.logical import Or


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
