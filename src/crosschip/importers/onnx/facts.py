"""Facts about operands that an import needs; where one is not known, the node is refused.

The functions raise `UnsupportedError`, which names the operand.
"""

from __future__ import annotations

from crosschip.ir import Array, ModelError, Operand, Shape, UnsupportedError


def shape_of(operand: Operand) -> Shape:
    """The shape, in which sizes may be open."""
    if operand.type.shape is None:
        raise UnsupportedError(f"the number of axes of {operand.name!r} must be known")
    return operand.type.shape


def rank_of(operand: Operand) -> int:
    """The number of axes."""
    return len(shape_of(operand))


def static_shape_of(operand: Operand) -> tuple[int, ...]:
    """The shape, all sizes of which must be known."""
    shape = operand.type.static_shape
    if shape is None:
        raise UnsupportedError(f"the shape of {operand.name!r} must be known")
    return shape


def size_of(operand: Operand, axis: int) -> int:
    """The size of an axis; `ModelError` if the operand does not have it."""
    shape = shape_of(operand)
    if not -len(shape) <= axis < len(shape):
        raise ModelError(f"{operand.name!r} of {len(shape)} axes has no axis {axis}")
    size = shape[axis]
    if not isinstance(size, int):
        raise UnsupportedError(f"the size of axis {axis} of {operand.name!r} must be known")
    return size


def value_of(operand: Operand, what: str) -> Array:
    """The elements; `what` says in messages what they are."""
    if operand.value is None:
        raise UnsupportedError(f"{what} is computed when the model runs")
    return operand.value
