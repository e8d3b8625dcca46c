"""Arithmetic cost of operations."""

from __future__ import annotations

from crosschip.ir import Operation
from crosschip.ir.dimension import substitute
from crosschip.ops.definition.operator import UnknownRank


def multiply_adds(operation: Operation) -> int:
    """Return `Operation.multiply_adds` as a number: dynamic dimensions do not count as factors.

    It is 0 if a shape is not known at all.
    """
    try:
        count = operation.multiply_adds()
    except UnknownRank:
        return 0
    if isinstance(count, int):
        return count
    number = substitute(count, dict.fromkeys(count.names, 1))
    assert isinstance(number, int), "all names have values"
    return max(0, number)
