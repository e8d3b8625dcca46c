"""The greatest value of integers as an expression over sizes.

The product of two sizes may be anything that the product of their greatest values is; but where
positions in a tensor of that many elements are computed, it is the number of these that matters,
and an expression says so.
"""

from __future__ import annotations

from collections.abc import Callable
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
"""Gives the end of an operand's values: none is below 0 or above it; `None` if none is known."""


def end_of(operation: Operation, ends: EndOf) -> Dim | None:
    """The end of what an operation makes."""
    rule = _RULES.get(type(operation))
    if rule is None or (isinstance(operation, Operator) and operation.fused is not Fuse.NONE):
        return None
    try:
        return rule(operation, ends)
    except ComputedParameter:
        return None


def end_of_given(operand: Operand) -> Dim | None:
    """The end of an operand by what is known of its elements: all are one expression."""
    values = operand.type.shape_value
    if operand.is_constant and operand.type.static_shape in ((), (1,)):
        array = operand.value
        values = None if array is None or array.dtype.kind not in "iu" else (array.item(),)
    if not values or any(value != values[0] for value in values) or not is_natural(values[0]):
        return None
    return values[0]


def _moved(op: Any, ends: EndOf) -> Dim | None:
    return ends(op.input)


def _place(op: searching.ArgMax | searching.ArgMin, ends: EndOf) -> Dim | None:
    shape = op.input.type.shape
    return None if shape is None else shape[op.axis]


def _range(op: creation.Range, ends: EndOf) -> Dim | None:
    upwards = all(ends(operand) is not None for operand in (op.start, op.step))
    return ends(op.end) if upwards else None


def _sum(op: arithmetic.Add, ends: EndOf) -> Dim | None:
    one, other = ends(op.input0), ends(op.input1)
    return None if one is None or other is None else one + other


def _product(op: arithmetic.Mul, ends: EndOf) -> Dim | None:
    one, other = ends(op.input0), ends(op.input1)
    return None if one is None or other is None else one * other


_RULES: dict[type, Callable[[Any, EndOf], Dim | None]] = {
    **dict.fromkeys(
        (
            *(layout.Reshape, layout.Transpose, layout.Squeeze, layout.Unsqueeze, layout.Flatten),
            *(layout.Expand, rearranging.Tile, slicing.Slice, joining.Split, conversion.Assign),
            *(indexing.Gather, indexing.GatherND, indexing.GatherElements),
        ),
        _moved,
    ),
    **dict.fromkeys((searching.ArgMax, searching.ArgMin), _place),
    creation.Range: _range,
    arithmetic.Add: _sum,
    arithmetic.Mul: _product,
}
