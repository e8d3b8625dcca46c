"""Reductions of rank 3, which OpenVINO fuses wrongly with constants around them."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.devices.openvino import instruction_sets
from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ir.types import BOOLEANS
from crosschip.ops.standard.arithmetic import Div, Max
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.reduction import ReduceMean, Reduction
from crosschip.passes.rewrite_operations import rebuild


def apart_from_scales(b: Builder, op: Reduction) -> Sequence[Operand]:
    """Insert a maximum of the input with itself, which OpenVINO does not fuse.

    Otherwise it reduces the integers and fuses their scales. Quirk `reduction-beside-constant`.
    """
    return (rebuild(b, op, input=b.add(Max, op.input, op.input)),)


def apart_from_constants(b: Builder, op: Reduction) -> Sequence[Operand]:
    """Insert a maximum of the result with itself, which OpenVINO does not fuse.

    Quirk `reduction-beside-constant`.
    """
    result = rebuild(b, op)
    return (b.add(Max, result, result),)


def apart_from_normalization(b: Builder, op: ReduceMean) -> Sequence[Operand] | None:
    """Insert a maximum after a mean, so that OpenVINO does not find a normalization (`MVN`).

    Quirk `limited-mvn`.
    """
    return apart_from_constants(b, op) if instruction_sets.breaks_mvn() else None


def reduces_scaled_integers(model: Model) -> frozenset[Operation]:
    """Return the reductions of rank 3 whose input depends on dequantized integers."""
    scaled = scaled_integers(model)
    return frozenset(op for op in _reductions(model) if op.input in scaled)


def meets_constants(model: Model) -> frozenset[Operation]:
    """Return the reductions of rank 3 whose result reaches an operation with a constant."""
    combined = meeting_constants(model)
    return frozenset(op for op in _reductions(model) if op.outputs[0] in combined)


def _reductions(model: Model) -> Sequence[Reduction]:
    return [
        operation
        for operation in model.operations
        if isinstance(operation, Reduction)
        and len(operation.input.type.shape or ()) == 3
        and operation.input.type.element_type not in BOOLEANS
    ]


def meeting_constants(model: Model) -> frozenset[Operand]:
    """Return the operands from which unary functions lead to an operation with a constant.

    OpenVINO fuses such operations. The constants are the model's, or scales of integers, which
    OpenVINO moves behind what it computes on the integers. Constants of one element count only as
    divisors.
    """
    combined: set[Operand] = set()
    for operation in reversed(model.operations):
        operands = [o for o in operation.inputs if o is not None]
        computed = [operand for operand in operands if not operand.is_constant]
        divides = isinstance(operation, Div)
        meets = isinstance(operation, Quantize) or any(
            operand.is_constant and (divides or _has_several(operand)) for operand in operands
        )
        if meets or (len(computed) == 1 and not combined.isdisjoint(operation.outputs)):
            combined.update(computed)
    return frozenset(combined)


def scaled_integers(model: Model) -> frozenset[Operand]:
    """Return the operands that depend on dequantized integers."""
    scaled: set[Operand | None] = set()
    for operation in model.operations:
        if isinstance(operation, Dequantize) or not scaled.isdisjoint(operation.inputs):
            scaled.update(operation.outputs)
    return frozenset(operand for operand in scaled if operand is not None)


def _has_several(constant: Operand) -> bool:
    return any(size != 1 for size in constant.type.shape or ())
