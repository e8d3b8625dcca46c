"""Constant folding: outputs of operations that are known before a model runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Operand, Operation
from crosschip.ir.budget import spend
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.creation import ShapeOf


def fold_operation(operation: Operation, limit: int = 2**16) -> tuple[Array, ...] | None:
    """Return the outputs of an operation if they can be computed now, else `None`.

    They can if all inputs are constant. The output of `SHAPE`, and values computed from it, are
    also known if the sizes are.

    Args:
        operation: the operation; only standard operators are folded.
        limit: the largest number of output elements, unless the inputs have as many, so that
            folding does not inflate the model.
    """
    if not isinstance(operation, Operator):
        return None
    if isinstance(operation, ShapeOf):
        shape = operation.input.type.static_shape
        if shape is None or max(shape, default=0) > np.iinfo(operation.dtype.dtype).max:
            return None
        return (np.array(shape, operation.dtype.dtype),)
    sizes = _sizes(operation)
    if sizes is not None:
        return (sizes,)
    for operand in operation.inputs:
        if operand is not None and operand.content is None:
            return None
    counts = _counts(operation.outputs)
    if counts is None or sum(counts) > max(_read(operation), limit):
        return None
    dtypes = [output.type.element_type.dtype for output in operation.outputs]
    spend(bytes=sum(n * dtype.itemsize for n, dtype in zip(counts, dtypes, strict=True)))
    try:
        return operation.kernel()([None if o is None else o.value for o in operation.inputs])
    except (IndexError, MemoryError, RuntimeError, ValueError):
        # The values break a rule of the operator, such as an index out of range. This matters only
        # if the operation runs; its device then reports the error.
        return None


def _sizes(operation: Operation) -> Array | None:
    """Return an output that consists of known sizes, or of comparisons of them, else `None`."""
    type_ = operation.outputs[0].type
    sizes, shape = type_.shape_value, type_.static_shape
    if sizes is None or shape is None or len(operation.outputs) > 1:
        return None
    if not all(isinstance(size, int) and -(2**63) <= size < 2**63 for size in sizes):
        return None
    known = np.array(sizes, np.int64).reshape(shape)
    values = known.astype(type_.element_type.dtype)
    return values if np.array_equal(values, known) else None


def _read(operation: Operation) -> int:
    """Return the number of elements of the operation's inputs, each operand counted once."""
    read = {operand for operand in operation.inputs if operand is not None}
    return sum(math.prod(operand.type.static_shape or ()) for operand in read)


def _counts(operands: Sequence[Operand]) -> list[int] | None:
    """Return the number of elements of each operand; `None` if a size is unknown."""
    shapes = [operand.type.static_shape for operand in operands]
    counts = [math.prod(shape) for shape in shapes if shape is not None]
    return counts if len(counts) == len(shapes) else None
