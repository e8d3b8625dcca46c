"""Operators that repeat or move the elements of a tensor."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ops.standard.layout import Expand
from crosschip.ops.standard.rearranging import Roll, Tile


@imports("expand_v2")
def expand_v2(op: Context) -> None:
    op.make(Expand, op.input(), op.integers_or_tensor("shape", "Shape", "expand_shapes_tensor"))


@imports("expand_as_v2")
def expand_as_v2(op: Context) -> None:
    like = op.optional_input("Y")
    op.make(Expand, op.input(), op.integers("target_shape") if like is None else op.shape(like))


@imports("expand")
def expand(op: Context) -> None:
    times = op.integers_or_tensor("expand_times", "ExpandTimes", "expand_times_tensor")
    op.make(Tile, op.input(), times)


@imports("tile")
def tile(op: Context) -> None:
    times = op.integers_or_tensor("repeat_times", "RepeatTimes", "repeat_times_tensor")
    op.make(Tile, op.input(), times)


@imports("roll")
def roll(op: Context) -> None:
    """Paddle 1 called the axes `dims`."""
    shifts = op.integers_or_tensor("shifts", "ShiftsTensor")
    op.make(Roll, op.input(), shifts, op.integers("axis", op.integers("dims", ())) or None)
