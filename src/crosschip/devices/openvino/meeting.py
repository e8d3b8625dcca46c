"""Operands of which functions are combined with constants, as OpenVINO does in one go.

The constants are the model's, or scales of integers, which OpenVINO moves behind what it can
compute on the integers.
"""

from __future__ import annotations

from crosschip.ir import Model, Operand
from crosschip.ops.standard.arithmetic import Div
from crosschip.ops.standard.quantization import Dequantize, Quantize


def meeting_constants(model: Model) -> frozenset[Operand]:
    """The operands from which functions of one tensor lead to an operation with a constant.

    Constants of one element count as divisors only, which scales of a quantization are, too.
    """
    found: set[Operand] = set()
    for operation in reversed(model.operations):
        given = [o for o in operation.inputs if o is not None]
        computed = [operand for operand in given if not operand.is_constant]
        divides = isinstance(operation, Div)
        meets = isinstance(operation, Quantize) or any(
            operand.is_constant and (divides or _has_several(operand)) for operand in given
        )
        if meets or (len(computed) == 1 and not found.isdisjoint(operation.outputs)):
            found.update(computed)
    return frozenset(found)


def scaled_integers(model: Model) -> frozenset[Operand]:
    """The operands that are made, by whichever operations, of what integers stand for."""
    found: set[Operand | None] = set()
    for operation in model.operations:
        if isinstance(operation, Dequantize) or not found.isdisjoint(operation.inputs):
            found.update(operation.outputs)
    return frozenset(operand for operand in found if operand is not None)


def _has_several(constant: Operand) -> bool:
    return any(size != 1 for size in constant.type.shape or ())
