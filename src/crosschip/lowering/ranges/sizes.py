"""The greatest values of sizes that show in a run only: a function an operator.

Such a size equals nothing but itself; but it is made of others, or of numbers that are known to be
in a range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from crosschip.ir import Dim, Operand, Operation
from crosschip.ir.dimension import product
from crosschip.lowering.ranges.interval import Interval
from crosschip.lowering.ranges.rules import Facts
from crosschip.ops.definition.kinds import Broadcast
from crosschip.ops.standard import creation, layout, logical, searching, slicing

Bounds = Sequence[Interval | None]
"""For each axis of an output, a range that reaches as far as its size may; `None`: none known."""


def bounds_of(operation: Operation, index: int, facts: Facts) -> Bounds:
    """The bounds of the sizes of an output, by its index; none if no rule tells."""
    for kinds, rule in _RULES:
        if isinstance(operation, kinds):
            return rule(operation, index, facts)
    return ()


def _stretched(op: Operation, index: int, facts: Facts) -> Bounds:
    """Of each axis, the greatest of the sizes that are stretched to one."""
    shapes = [operand.type.shape for operand in op.inputs if operand is not None]
    known = [shape[::-1] for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return ()
    return [_greatest(facts, sizes) for sizes in zip_longest(*known, fillvalue=1)][::-1]


def _greatest(facts: Facts, sizes: Sequence[Dim]) -> Interval:
    first, *rest = map(facts.size, sizes)
    return first.hull(*rest)


def _parts(op: slicing.Slice, index: int, facts: Facts) -> Bounds:
    """As many as there are, at most."""
    return [facts.size(size) for size in op.input.type.shape or ()]


def _best(op: searching.TopK, index: int, facts: Facts) -> Bounds:
    """As many as are asked for, or as there are."""
    there, count = [facts.size(size) for size in op.input.type.shape or ()], op.operand("k")
    requested = None if count is None else facts.of(count)
    if requested is None:
        return there
    return [size.within(-math.inf, max(0, requested.high)) for size in there]


def _counted(op: creation.Range, index: int, facts: Facts) -> Bounds:
    start, end, step = (facts.of(operand) for operand in (op.start, op.end, op.step))
    if start is None or end is None or step is None or step.low <= 0:
        return ()
    return [Interval(0, max(0, (end.high - start.low + step.low - 1) // step.low))]


def _places(op: searching.NonZero | searching.Unique, index: int, facts: Facts) -> Bounds:
    """As many as there are elements, on each axis."""
    shape = op.input.type.shape
    if shape is None:
        return ()
    count = facts.size(product(shape))
    return [count.hull(Interval(0, len(shape)))] * len(op.outputs[index].type.shape or ())


def _shaped(op: layout.Reshape | layout.Expand | creation.Fill, index: int, facts: Facts) -> Bounds:
    """As the parameter says, or as many as there are elements."""
    requested = facts.of(_parameter(op))
    if requested is None:
        return ()
    shape = () if isinstance(op, creation.Fill) else op.input.type.shape
    if shape is None:
        return ()
    return [requested.hull(facts.size(product(shape)))] * len(op.outputs[index].type.shape or ())


def _parameter(op: layout.Reshape | layout.Expand | creation.Fill) -> Operand:
    operand = op.operand("shape")
    assert operand is not None, "it is required"
    return operand


_Rule = Callable[[Any, int, Facts], Bounds]
_RULES: Sequence[tuple[tuple[type, ...], _Rule]] = (
    ((Broadcast, logical.Where), _stretched),
    ((slicing.Slice,), _parts),
    ((searching.TopK,), _best),
    ((creation.Range,), _counted),
    ((searching.NonZero, searching.Unique), _places),
    ((layout.Reshape, layout.Expand, creation.Fill), _shaped),
)
