"""Operators that put tensors together or take them apart."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import ModelError, UnsupportedError
from crosschip.ops.standard.joining import Concat, Split, Stack, Unstack


@imports("concat")
def concat(op: Context) -> None:
    op.make(Concat, parts=op.inputs("X"), axis=op.integer("axis", 0, "AxisTensor"))


@imports("stack")
def stack(op: Context) -> None:
    parts = op.inputs("X")
    op.make(Stack, parts, op.integer("axis", 0), output="Y")
    if all(part.type.shape == () for part in parts):
        op.note([entry for part in parts for entry in op.known(part) or (None,)], "Y")


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
