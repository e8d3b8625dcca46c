"""Chains of small matrix products, which OpenVINO makes one kernel of, and some of them wrong."""

from __future__ import annotations

from typing import Any

from crosschip.ir import Model, Operand
from crosschip.ir.types import INDICES, QUANTIZABLE
from crosschip.ops.standard.matrix import FullyConnected, MatMul

_STEPS = QUANTIZABLE - INDICES
"""The types of quantized tensors, where there are any."""

_MOST = 256
"""The size of matrices up to which OpenVINO joins their products."""


def unfused(model: Model) -> dict[str, Any]:
    """The setting by which OpenVINO makes no kernels of several operations, where it must not.

    Of matrix products one after another (`TokenizeMLPSeqSnippets`), with few rows, it computes
    garbage where they are quantized; where a result is both read and an output, the process dies
    while compiling, or the model is refused. Seen with 2026.4.1 for 4, 6 and 8 rows on two
    processors; 1,500 chains of reals without such an output were right.
    """
    return {"SNIPPETS_MODE": "DISABLE"} if _has_wrong_chain(model) else {}


def _has_wrong_chain(model: Model) -> bool:
    """Tell whether a small product is made, by whatever is between, of another one, and wrong."""
    behind: dict[Operand, None] = {}
    chained = False
    for operation in model.operations:
        if any(map(_has_wrong_chain, operation.bodies)):
            return True
        small = isinstance(operation, FullyConnected | MatMul) and all(
            map(_is_small, (operation.inputs[1], operation.outputs[0]))
        )
        follows = any(operand in behind for operand in operation.inputs)
        chained |= small and follows
        if small or follows:
            behind.update(dict.fromkeys(operation.outputs))
    return chained and (_is_quantized(model) or _is_read_and_returned(model, behind))


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


def _is_read_and_returned(model: Model, operands: dict[Operand, None]) -> bool:
    """Tell whether some operand is an output of the model, and read in it."""
    returned = [operand for operand in model.outputs.values() if operand in operands]
    read = {operand for operation in model.operations for operand in operation.inputs}
    return not read.isdisjoint(returned)
