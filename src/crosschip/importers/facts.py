"""Static facts about operands that an import needs: shapes, sizes, values, foldable outputs.

Where a fact is not static, the functions raise `UnsupportedError`, which names the operand.
"""

from __future__ import annotations

import math

from crosschip.ir import (
    Array,
    ModelError,
    Operand,
    Operation,
    Shape,
    UnsupportedError,
    constant,
)
from crosschip.ops.folding import fold_operation
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.quantization import Dequantize

_SMALL = 4096
"""The maximum element count of inputs and outputs that are folded during import."""


def shape_of(operand: Operand) -> Shape:
    """Return the shape, which may have dynamic dimensions."""
    if operand.type.shape is None:
        raise UnsupportedError(f"the number of axes of {operand.name!r} must be known")
    return operand.type.shape


def rank_of(operand: Operand) -> int:
    """Return the rank."""
    return len(shape_of(operand))


def static_shape_of(operand: Operand) -> tuple[int, ...]:
    """Return the shape, which must be static."""
    shape = operand.type.static_shape
    if shape is None:
        raise UnsupportedError(f"the shape of {operand.name!r} must be known")
    return shape


def size_of(operand: Operand, axis: int) -> int:
    """Return the static size of an axis; raise `ModelError` if there is no such axis."""
    shape = shape_of(operand)
    if not -len(shape) <= axis < len(shape):
        raise ModelError(f"{operand.name!r} of {len(shape)} axes has no axis {axis}")
    size = shape[axis]
    if not isinstance(size, int):
        raise UnsupportedError(f"the size of axis {axis} of {operand.name!r} must be known")
    return size


def value_of(operand: Operand, what: str) -> Array:
    """Return the elements of a constant; `what` names them in the message."""
    if operand.value is None:
        raise UnsupportedError(f"{what} is computed when the model runs")
    return operand.value


def fold_outputs(operation: Operation) -> tuple[Operand, ...] | None:
    """Return the outputs as constants, so that later imports see static shapes and conditions.

    `None` if they are not static, are large, or the operation rejects its constants. `Dequantize`
    is never folded, since a device may compute on the integers.
    """
    if isinstance(operation, Dequantize):
        return None
    if not isinstance(operation, ShapeOf):
        for operand in operation.inputs:
            content = None if operand is None else operand.content
            if operand is not None and (content is None or math.prod(content.shape) > _SMALL):
                return None
    values = fold_operation(operation, _SMALL)
    if values is None:
        return None
    pairs = zip(operation.outputs, values, strict=True)
    return tuple(constant(value, output.name, output.type.quantization) for output, value in pairs)
