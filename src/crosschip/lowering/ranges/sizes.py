"""Upper bounds of data-dependent sizes: a function per operator.

Such a size is a new dimension, but it derives from other dimensions, or from numbers whose range
is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from crosschip.ir import Operand, Operation
from crosschip.ir.dimension import product
from crosschip.lowering.ranges.interval import Interval
from crosschip.lowering.ranges.rules import KnownRanges
from crosschip.ops.definition.kinds import Broadcast
from crosschip.ops.standard import creation, layout, logical, searching, slicing

Bounds = Sequence[Interval | None]
"""For each axis of an output, a range whose high end bounds the size; `None` if not known."""


def bounds_of(operation: Operation, index: int, ranges: KnownRanges) -> Bounds:
    """Return the bounds of an output's sizes; empty if no rule applies."""
    for kinds, rule in _RULES:
        if isinstance(operation, kinds):
            return rule(operation, index, ranges)
    return ()


def _broadcast(op: Operation, index: int, ranges: KnownRanges) -> Bounds:
    """Bound each axis by the greatest of the broadcast sizes."""
    shapes = [operand.type.shape for operand in op.inputs if operand is not None]
    reversed_shapes = [shape[::-1] for shape in shapes if shape is not None]
    if len(reversed_shapes) < len(shapes):
        return ()
    axes = zip_longest(*reversed_shapes, fillvalue=1)
    return [Interval.hull_of(map(ranges.size, sizes)) for sizes in axes][::-1]


def _top_k(op: searching.TopK, index: int, ranges: KnownRanges) -> Bounds:
    """Bound each axis by its size and by k."""
    sizes, count = [ranges.size(size) for size in op.input.type.shape or ()], op.operand("k")
    requested = None if count is None else ranges.of(count)
    if requested is None:
        return sizes
    return [size.within(-math.inf, max(0, requested.high)) for size in sizes]


def _range(op: creation.Range, index: int, ranges: KnownRanges) -> Bounds:
    start, end, step = (ranges.of(operand) for operand in (op.start, op.end, op.step))
    if start is None or end is None or step is None or step.low <= 0:
        return ()
    return [Interval(0, max(0, (end.high - start.low + step.low - 1) // step.low))]


def _non_zero(op: searching.NonZero | searching.Unique, index: int, ranges: KnownRanges) -> Bounds:
    """Bound each axis by the number of elements."""
    shape = op.input.type.shape
    if shape is None:
        return ()
    count = ranges.size(product(shape))
    return [count.hull(Interval(0, len(shape)))] * len(op.outputs[index].type.shape or ())


def _shape_parameter(
    op: layout.Reshape | layout.Expand | creation.Fill, index: int, ranges: KnownRanges
) -> Bounds:
    """Bound each axis by the shape parameter's range and the number of elements."""
    requested = ranges.of(_shape_operand(op))
    if requested is None:
        return ()
    shape = () if isinstance(op, creation.Fill) else op.input.type.shape
    if shape is None:
        return ()
    return [requested.hull(ranges.size(product(shape)))] * len(op.outputs[index].type.shape or ())


def _shape_operand(op: layout.Reshape | layout.Expand | creation.Fill) -> Operand:
    operand = op.operand("shape")
    assert operand is not None, "it is required"
    return operand


_Rule = Callable[[Any, int, KnownRanges], Bounds]
_RULES: Sequence[tuple[tuple[type, ...], _Rule]] = (
    ((Broadcast, logical.Where), _broadcast),
    ((slicing.Slice,), lambda op, _, ranges: [*map(ranges.size, op.input.type.shape or ())]),
    ((searching.TopK,), _top_k),
    ((creation.Range,), _range),
    ((searching.NonZero, searching.Unique), _non_zero),
    ((layout.Reshape, layout.Expand, creation.Fill), _shape_parameter),
)
