"""Operators that tile, roll or mask tensors."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context, imports
from crosschip.ops.standard.rearranging import Roll, Tile, Trilu


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
    """Shift elements cyclically along axes, whose attribute is `dims` in Paddle 1."""
    shifts = op.integers_or_tensor("shifts", "ShiftsTensor")
    op.make(Roll, op.input(), shifts, op.integers("axis", op.integers("dims", ())) or None)


@imports("tril_triu")
def tril_triu(op: Context) -> None:
    op.make(Trilu, op.input(), op.integer("diagonal", 0), not op.flag("lower", True))


@imports("pd_op.triu")
def triu(op: Context) -> None:
    op.make(Trilu, op.input(), op.integer("diagonal", 0), True)
