"""Operators that cut a part out of a tensor."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.table import imports
from crosschip.ir import Operand, UnsupportedError
from crosschip.ops.standard.layout import Squeeze
from crosschip.ops.standard.slicing import Slice

_BEFORE_ALL = -(2**31)
"""The end of a slice that goes backwards to the first element and includes it."""


@imports("slice")
def slice(op: Context) -> None:
    _make(
        op,
        op.input("Input"),
        op.integers("axes"),
        op.integers_or_tensor("starts", "StartsTensor", "StartsTensorList"),
        op.integers_or_tensor("ends", "EndsTensor", "EndsTensorList"),
    )


@imports("strided_slice")
def strided_slice(op: Context) -> None:
    """Backwards, an end of -1 is before the first element, and one beyond it is the first."""
    x, axes = op.input("Input"), op.integers("axes")
    strides = op.integers_or_tensor("strides", "StridesTensor", "StridesTensorList")
    ends = op.integers_or_tensor("ends", "EndsTensor", "EndsTensorList")
    if isinstance(strides, tuple) and min(strides, default=1) < 0:
        if isinstance(ends, Operand) or not len(axes) == len(ends) == len(strides):
            raise UnsupportedError(f"strides {list(strides)}: the ends must be known, and as many")
        ends = tuple(
            _end_before(x, axis, end) if stride < 0 else end
            for axis, end, stride in zip(axes, ends, strides, strict=True)
        )
    starts = op.integers_or_tensor("starts", "StartsTensor", "StartsTensorList")
    _make(op, x, axes, starts, ends, strides)


def _end_before(x: Operand, axis: int, end: int) -> int:
    """What Paddle 2 means by the end of a slice that goes backwards, as NumPy has it."""
    if end == -1:
        return _BEFORE_ALL
    shape = x.type.shape
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    return max(end, -size) if isinstance(size, int) else end


@imports("pd_op.strided_slice")
def strided_slice_of_paddle3(op: Context) -> None:
    """The same as NumPy has it."""
    _make(
        op,
        op.input("Input"),
        op.integers("axes"),
        op.integers_or_tensor("starts", "StartsTensor"),
        op.integers_or_tensor("ends", "EndsTensor"),
        op.integers_or_tensor("strides", "StridesTensor"),
    )


def _make(op: Context, *arguments: object) -> None:
    """A slice, without the axes that are to be removed."""
    if removed := op.integers("decrease_axis", ()):
        op.make(Squeeze, op.add(Slice, *arguments), removed)
    else:
        op.make(Slice, *arguments)
