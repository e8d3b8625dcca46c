"""Constant folding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosschip.ir import Array, Model, ModelError, Operation
from crosschip.ir.dimension import product
from crosschip.ops import Operator
from crosschip.ops.standard.creation import ShapeOf
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter

_MAX_GROWTH = 2**16


@dataclass(frozen=True)
class FoldConstants(Pass):
    """Replaces what is known before the model runs by its value.

    1. An operation that reads only constants becomes the constants that its reference computes,
       unless they have over 65,536 elements and more than it reads: it stays then, so that a model
       does not grow.
    2. `SHAPE` of an operand whose sizes are all known becomes a constant.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for operation in map(rewriter.resolved, model.operations):
            values = _known_outputs(operation)
            if values is None:
                rewriter.keep(operation)
            else:
                for operand, value in zip(operation.outputs, values, strict=True):
                    rewriter.replace_by_value(operand, value)
        return rewriter.finish()

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for operation in after.operations:
            if isinstance(operation, ShapeOf) and operation.input.type.static_shape is not None:
                raise ModelError(f"{operation.type} {operation.name!r} is still computed")


def _known_outputs(operation: Operation) -> tuple[Array, ...] | None:
    if not isinstance(operation, Operator):
        return None
    if isinstance(operation, ShapeOf):
        shape = operation.input.type.static_shape
        return None if shape is None else (np.array(shape, operation.dtype.dtype),)
    arrays = [None if o is None else o.value for o in operation.inputs]
    if any(a is None and o is not None for a, o in zip(arrays, operation.inputs, strict=True)):
        return None
    if _grows(operation):
        return None
    try:
        return operation.kernel()(arrays)
    except (ValueError, IndexError):
        # The values do not fit the operator (an index out of range, say). Whether that matters
        # shows only if the operation is run; the device that runs it reports it.
        return None


def _grows(operation: Operation) -> bool:
    read = sum(o.value.size for o in operation.inputs if o is not None and o.value is not None)
    made = 0
    for output in operation.outputs:
        size = None if output.type.shape is None else product(output.type.shape)
        if not isinstance(size, int):
            return True
        made += size
    return made > max(read, _MAX_GROWTH)
