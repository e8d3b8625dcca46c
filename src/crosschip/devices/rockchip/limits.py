"""Rules for operations that the compiler or simulator computes unlike their definitions.

Each gives the smallest case that was wrong with version 2.5.0, or the name of its quirk.
"""

from __future__ import annotations

from crosschip.devices.kits.limits import two_spatial_axes
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand, Operation
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Clip, Pow
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.rearranging import ReverseSequence
from crosschip.ops.standard.unary import Exp, Floor

_INTEGERS = (ElementType.INT32, ElementType.INT64)


def limit(operation: Operation) -> Refusal | None:
    """Return the rule that an operation breaks, in addition to the compiler's own."""
    refusal = two_spatial_axes(operation) or _sizes(operation)
    if refusal is not None:
        return refusal
    if isinstance(operation, Pow):
        return _exponents(operation)
    if isinstance(operation, ReverseSequence):
        return _lengths(operation)
    if isinstance(operation, Clip):
        return _bounds(operation)
    return _steps(operation) or _scales(operation)


def _sizes(operation: Operation) -> Refusal | None:
    """Refuse scalars and empty tensors, which the compiler rejects or reshapes."""
    for slot, operand in _computed(operation):
        shape = operand.type.shape
        if shape == ():
            return Refusal(slot, "has no axes", Rule.SHAPE)
        if shape is not None and 0 in shape:
            return Refusal(slot, "has no elements", Rule.SHAPE)
    return None


def _exponents(op: Pow) -> Refusal | None:
    """Refuse bases that are broadcast (quirk `power-of-stretched`)."""
    if op.input0.type.shape != op.outputs[0].type.shape:
        return Refusal("input0", "must have the shape of the result", Rule.SHAPE)
    return None


def _lengths(op: ReverseSequence) -> Refusal | None:
    """Refuse sequences that may be empty (quirk `sequence-of-nothing`)."""
    lengths = op.lengths.value
    if lengths is None or (lengths < 1).any():
        return Refusal("lengths", "must be known to be 1 or more", Rule.VALUE)
    return None


def _bounds(op: Clip) -> Refusal | None:
    """Refuse large integers (quirk `bounds-of-int64`)."""
    if op.input.type.element_type in _INTEGERS:
        detail = f"bounds of {op.input.type.element_type} are rounded"
        return Refusal("input", detail, Rule.ELEMENT_TYPE)
    return None


def _steps(operation: Operation) -> Refusal | None:
    """Refuse quantized inputs where an error of one quantization step matters.

    Examples: the integer 33 for 34, a comparison, e to the power of 5.1 for 5.
    """
    if not isinstance(operation, Operator) or isinstance(operation, Dequantize):
        return None
    exact = any(
        output.type.quantization is None and output.type.element_type not in FLOATS
        for output in operation.outputs
    )
    for slot, operand in operation.filled():
        quantized = operand.type.quantization is not None
        if quantized and (exact or isinstance(operation, Exp | Floor)):
            detail = "is quantized, and a step off is too far here"
            return Refusal(slot.name, detail, Rule.QUANTIZATION)
    return None


def _scales(operation: Operation) -> Refusal | None:
    """Refuse to move operands with scales along an axis, which the compiler never finishes."""
    if not isinstance(operation, Operator) or not operation.moves_integers:
        return None
    for slot, operand in _computed(operation):
        quantization = operand.type.quantization
        if quantization is not None and quantization.axis is not None:
            return Refusal(slot, "has scales along an axis", Rule.QUANTIZATION)
    return None


def _computed(operation: Operation) -> list[tuple[str, Operand]]:
    """Return the operands and results of an operation, except constants, with their slots."""
    slots = operation.filled() if isinstance(operation, Operator) else ()
    read = [(slot.name, operand) for slot, operand in slots if not operand.is_constant]
    return [*read, *(("output", output) for output in operation.outputs)]
