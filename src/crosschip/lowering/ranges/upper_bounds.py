"""Upper bounds of integers as expressions over dimensions.

A product of two dimensions may be as large as the product of their greatest values. But indices
into a tensor with that many elements are limited by the actual number of elements, which only an
expression over dimensions states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from crosschip.ir import Dim, Operand, Operation
from crosschip.ir.dimension import is_natural
from crosschip.ops import Operator
from crosschip.ops.definition.slots import ComputedParameter, Fuse
from crosschip.ops.standard import (
    arithmetic,
    conversion,
    creation,
    indexing,
    joining,
    layout,
    rearranging,
    searching,
    slicing,
)

EndOf = Callable[[Operand], Dim | None]
"""Returns the end of an operand's values, which are in [0, end]; `None` if no end is known."""


def end_of(operation: Operation, ends: EndOf) -> Dim | None:
    """Return the end of an operation's output, or `None`."""
    rule = _RULES.get(type(operation))
    if rule is None or (isinstance(operation, Operator) and operation.fused is not Fuse.NONE):
        return None
    try:
        return rule(operation, ends)
    except ComputedParameter:
        return None


class UpperBounds:
    """Upper bounds of the integers that operations produce, computed in model order."""

    def __init__(self) -> None:
        self._ends: dict[Operand, Dim | None] = {}
        self._columns: dict[Operand, Sequence[Operand]] = {}
        self._reached: set[Operand] = set()

    def follow(self, operation: Operation) -> None:
        """Compute the end of an operation's output."""
        if len(operation.outputs) != 1:
            return
        output = operation.outputs[0]
        last = end_of(operation, self.of)
        if last is not None and isinstance(operation, _COUNTING):
            last = last - 1
        self._ends[output] = last
        if last is not None and _reaches(operation, self._is_reached):
            self._reached.add(output)
        if isinstance(operation, joining.Concat) and _is_of_columns(operation):
            self._columns[output] = operation.parts

    def of(self, operand: Operand) -> Dim | None:
        """Return the greatest value of an operand as an expression, or `None`."""
        last = self._ends.get(operand)
        if last is None:
            last = end_of_known(operand)
        return _greatest(operand) if last is None else last

    def reached(self, operand: Operand, count: int) -> Sequence[Dim] | None:
        """Return the greatest values of `count` columns, if each certainly occurs, else `None`."""
        parts = self._columns.get(operand, (operand,))
        ends = [self.of(part) for part in parts if self._is_reached(part)]
        known = [end for end in ends if end is not None]
        return known if len(known) == len(parts) == count else None

    def _is_reached(self, operand: Operand) -> bool:
        return operand in self._reached or end_of_known(operand) is not None

    def of_columns(self, operand: Operand, count: int) -> Sequence[Dim | None]:
        """Return the greatest value of each of `count` columns along the last axis."""
        parts = self._columns.get(operand, ())
        return [self.of(part) for part in (parts if len(parts) == count else [operand] * count)]


def _reaches(operation: Operation, is_reached: Callable[[Operand], bool]) -> bool:
    """Return whether an operation's end certainly occurs in its output, if that is not empty."""
    match operation:
        case creation.Range():
            return end_of_known(operation.step) == 1
        case arithmetic.Add() | arithmetic.Mul():
            parts = operation.input0, operation.input1
            # The greatest elements of two ranges need not be at the same index.
            is_shifted = any(end_of_known(part) is not None for part in parts)
            return is_shifted and all(map(is_reached, parts))
    data = operation.inputs[0]
    return isinstance(operation, _MOVING) and data is not None and is_reached(data)


def _is_of_columns(op: joining.Concat) -> bool:
    """Return whether parts of one column each are concatenated along the last axis."""
    shapes = [part.type.shape for part in op.parts]
    return all(shape and op.axis in (-1, len(shape) - 1) and shape[-1] == 1 for shape in shapes)


def end_of_known(operand: Operand) -> Dim | None:
    """Return the end of an operand whose elements are known to equal one expression, or `None`."""
    values = operand.type.shape_value
    if operand.is_constant and operand.type.static_shape in ((), (1,)):
        array = operand.value
        values = None if array is None or array.dtype.kind not in "iu" else (array.item(),)
    if not values or any(value != values[0] for value in values) or not is_natural(values[0]):
        return None
    return values[0]


def _greatest(operand: Operand) -> int | None:
    """Return the greatest of constant integers, if there are any and none is negative."""
    array = operand.value
    if array is None or array.dtype.kind not in "iu" or not array.size or array.min() < 0:
        return None
    return int(array.max())


_COUNTING = (creation.Range, searching.ArgMax, searching.ArgMin)
"""Operators whose outputs are less than the end."""


def _arg_extreme(op: searching.ArgMax | searching.ArgMin, ends: EndOf) -> Dim | None:
    shape = op.input.type.shape
    return None if shape is None else shape[op.axis]


def _range(op: creation.Range, ends: EndOf) -> Dim | None:
    upwards = all(ends(operand) is not None for operand in (op.start, op.step))
    return ends(op.end) if upwards else None


def _sum_or_product(op: arithmetic.Add | arithmetic.Mul, ends: EndOf) -> Dim | None:
    one, other = ends(op.input0), ends(op.input1)
    if one is None or other is None:
        return None
    return one + other if isinstance(op, arithmetic.Add) else one * other


_MOVING = (
    *(layout.Reshape, layout.Transpose, layout.Squeeze, layout.Unsqueeze, layout.Flatten),
    *(layout.Expand, rearranging.Tile, conversion.Assign),
)
"""Operators whose output has all elements of the input, or none."""
_PICKING = (
    *(slicing.Slice, joining.Split),
    *(indexing.Gather, indexing.GatherND, indexing.GatherElements),
)
"""Operators whose output has some elements of the input."""

_RULES: dict[type, Callable[[Any, EndOf], Dim | None]] = {
    **dict.fromkeys((*_MOVING, *_PICKING), lambda op, ends: ends(op.input)),
    **dict.fromkeys((searching.ArgMax, searching.ArgMin), _arg_extreme),
    creation.Range: _range,
    **dict.fromkeys((arithmetic.Add, arithmetic.Mul), _sum_or_product),
}
