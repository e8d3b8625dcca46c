"""The constants of a model that are arguments of the function that it becomes."""

from __future__ import annotations

import math

from crosschip.ir import Array, Model, Operand

_LARGE_BYTES = 1024


def large_constants(model: Model) -> list[Operand]:
    """The constants that are no part of the function, in the model's order."""
    return [operand for operand in model.constants if _bytes(operand) >= _LARGE_BYTES]


def elements(operand: Operand) -> Array:
    """What a constant holds."""
    held = operand.value
    assert held is not None, "it is constant"
    return held


def _bytes(operand: Operand) -> int:
    return math.prod(operand.type.static_shape or ()) * operand.type.element_type.dtype.itemsize
