"""Computing, before a model runs, what operations make of constants."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Operand, Operation
from crosschip.ir.budget import spend
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard.creation import ShapeOf


def folded(operation: Operation, limit: int = 2**16) -> tuple[Array, ...] | None:
    """The outputs of an operation that are known before the model runs; `None` if they are not.

    They are known where all that it reads is constant, of `SHAPE` where the shape is, and of what
    picks sizes out of shapes, or computes with them, where these sizes are.

    Args:
        operation: any; of one that is no standard operator nothing is known.
        limit: how many elements it may make, if it does not read as many: a model is not to grow.
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
        # The values do not fit the operator (an index out of range, say). Whether that matters
        # shows only if the operation is run; the device that runs it reports it.
        return None


def _sizes(operation: Operation) -> Array | None:
    """The sizes, or truths about them, that an operation makes, if they are all known."""
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
    """The number of elements of constants that the operation reads, each counted once."""
    read = {operand for operand in operation.inputs if operand is not None}
    return sum(math.prod(operand.type.static_shape or ()) for operand in read)


def _counts(operands: Sequence[Operand]) -> list[int] | None:
    """The number of elements of each operand; `None` if one is not known."""
    shapes = [operand.type.static_shape for operand in operands]
    counts = [math.prod(shape) for shape in shapes if shape is not None]
    return counts if len(counts) == len(shapes) else None
