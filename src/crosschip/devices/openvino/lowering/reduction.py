"""Reductions of three axes, which OpenVINO combines wrong with constants around them."""

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
    """Reduce the greater one of the input and itself, with which OpenVINO combines nothing.

    As it reduces some of three axes, OpenVINO (2026.4) also combines what it makes with constants,
    those of the integers that it reduces in place of reals, too, and takes the wrong channels of
    them, or what lies behind them.

    Quirk `reduction-beside-constant`.
    """
    return (rebuild(b, op, input=b.add(Max, op.input, op.input)),)


def apart_from_constants(b: Builder, op: Reduction) -> Sequence[Operand]:
    """The greater one of the result and itself, for the same reason as `apart_from_scales`.

    Quirk `reduction-beside-constant`.
    """
    result = rebuild(b, op)
    return (b.add(Max, result, result),)


def apart_from_normalization(b: Builder, op: ReduceMean) -> Sequence[Operand] | None:
    """The greater one of a mean and itself, where OpenVINO may not find a normalization (`MVN`).

    That ends the process under a limit to instruction sets (quirk `limited-mvn`).

    Quirk `limited-mvn`.
    """
    return apart_from_constants(b, op) if instruction_sets.breaks_mvn() else None


def reduces_scaled_integers(model: Model) -> frozenset[Operation]:
    """The reductions of three axes that read what is made of what integers stand for."""
    scaled = scaled_integers(model)
    return frozenset(op for op in _reductions(model) if op.input in scaled)


def meets_constants(model: Model) -> frozenset[Operation]:
    """The reductions of three axes of whose results functions are combined with constants."""
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
    """The operands from which functions of one tensor lead to an operation with a constant.

    OpenVINO computes such operations in one go. The constants are the model's, or scales of
    integers, which it moves behind what it can compute on the integers. Those of one element count
    as divisors only, which scales of a quantization are, too.
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
    """The operands that are made, by whichever operations, of what integers stand for."""
    scaled: set[Operand | None] = set()
    for operation in model.operations:
        if isinstance(operation, Dequantize) or not scaled.isdisjoint(operation.inputs):
            scaled.update(operation.outputs)
    return frozenset(operand for operand in scaled if operand is not None)


def _has_several(constant: Operand) -> bool:
    return any(size != 1 for size in constant.type.shape or ())
