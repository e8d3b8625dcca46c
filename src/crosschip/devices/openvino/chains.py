"""Chains of small matrix products, which OpenVINO makes one kernel of, and some of them wrong.

Of matrix products one after another (`TokenizeMLPSeqSnippets`), with few rows, it computes garbage
where they are quantized; where a result is both read and an output, the process dies while
compiling, or the model is refused. Seen with 2026.4.1 for 4, 6 and 8 rows on two processors; 1,500
chains of reals without such an output were right. It looks for matrices only: with one more axis, a
product joins no other.
"""

from __future__ import annotations

from crosschip.ir import Model, Operand, Operation
from crosschip.ir.types import INDICES, QUANTIZABLE
from crosschip.ops.standard.matrix import FullyConnected, MatMul

_STEPS = QUANTIZABLE - INDICES
"""The types of quantized tensors, where there are any."""

_MOST = 256
"""The size of matrices up to which OpenVINO joins their products."""


def wrongly_chained_products(model: Model) -> frozenset[Operation]:
    """The small products that are made, by whatever is between, of others, if that goes wrong."""
    found: set[Operation] = set()
    behind: set[Operand] = set()
    for operation in model.operations:
        small = isinstance(operation, FullyConnected | MatMul) and all(
            map(_is_small, (operation.inputs[1], operation.outputs[0]))
        )
        follows = not behind.isdisjoint(filter(None, operation.inputs))
        if small and follows:
            found.add(operation)
        if small or follows:
            behind.update(operation.outputs)
    if found and (_is_quantized(model) or _is_read_and_returned(model, behind)):
        return frozenset(found)
    return frozenset()


def _is_small(operand: Operand | None) -> bool:
    shape = None if operand is None else operand.type.static_shape
    return shape is not None and len(shape) == 2 and shape[-1] <= _MOST


def _is_quantized(model: Model) -> bool:
    """Tell whether something in the model is quantized, by whatever operation."""
    return any(
        operand is not None and operand.type.element_type in _STEPS
        for operation in model.operations
        for operand in (*operation.inputs, *operation.outputs)
    )


def _is_read_and_returned(model: Model, operands: set[Operand]) -> bool:
    """Tell whether some operand is an output of the model, and read in it."""
    read = {operand for operation in model.operations for operand in operation.inputs}
    return not operands.isdisjoint(read.intersection(model.outputs.values()))
