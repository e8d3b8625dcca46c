"""Constant folding."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crosschip.ir import Array, Model, ModelError, Operand, Operation
from crosschip.ir.budget import spend
from crosschip.ops import Operator
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.quantization import Dequantize
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter

_MAX_GROWTH = 2**16


@dataclass(frozen=True)
class FoldConstants(Pass):
    """Replaces what is known before the model runs by its value.

    1. An operation that reads only constants becomes the constants that its reference computes,
       unless they have over 65,536 elements and more than it reads: it stays then, so that a model
       does not grow.
    2. `DEQUANTIZE` of a constant stays unless it makes a parameter: a device may compute on the
       integers, which the reals no longer tell.
    3. `SHAPE` of an operand whose sizes are all known becomes a constant.
    """

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        parameters = _parameters(model)
        for original in model.operations:
            spend()
            operation = rewriter.resolved(original)
            if isinstance(original, Dequantize) and original.outputs[0] not in parameters:
                rewriter.keep(operation)
                continue
            values = known_outputs(operation)
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


def _parameters(model: Model) -> set[Operand]:
    """The operands that operators read as parameters."""
    return {
        operand
        for operation in model.operations
        if isinstance(operation, Operator)
        for slot, operand in operation.filled()
        if slot.parameter
    }


def known_outputs(operation: Operation) -> tuple[Array, ...] | None:
    """The outputs of an operation, if they are known and not too large; else `None`."""
    if not isinstance(operation, Operator):
        return None
    if isinstance(operation, ShapeOf):
        shape = operation.input.type.static_shape
        return None if shape is None else (np.array(shape, operation.dtype.dtype),)
    if not all(operand is None or operand.is_constant for operand in operation.inputs):
        return None
    made = _made(operation)
    if made is None or made.size > max(_read(operation), _MAX_GROWTH):
        return None
    spend(bytes=made.bytes)
    try:
        return operation.kernel()([None if o is None else o.value for o in operation.inputs])
    except (IndexError, MemoryError, RuntimeError, ValueError):
        # The values do not fit the operator (an index out of range, say). Whether that matters
        # shows only if the operation is run; the device that runs it reports it.
        return None


def _read(operation: Operation) -> int:
    """The number of elements of constants that the operation reads, each counted once."""
    read = {operand for operand in operation.inputs if operand is not None}
    return sum(math.prod(operand.type.static_shape or ()) for operand in read)


class _Made(NamedTuple):
    """The elements and bytes that an operation makes."""

    size: int
    bytes: int


def _made(operation: Operation) -> _Made | None:
    """The size of what the operation makes; `None` if that is not known."""
    made = _Made(0, 0)
    for output in operation.outputs:
        shape = output.type.static_shape
        if shape is None:
            return None
        size = math.prod(shape)
        made = _Made(made.size + size, made.bytes + size * output.type.element_type.dtype.itemsize)
    return made
