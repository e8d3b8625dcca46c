"""Quantized models on reals."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Model, Operand, Operation, TensorType, constant
from crosschip.ops import Operator
from crosschip.ops.definition.quantized import reals
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.quantization import Dequantize, Quantize

_CONVERSIONS = (Quantize, Dequantize)


def on_reals(model: Model) -> Model | None:
    """Return a model without the rounding of quantized tensors; `None` if it has none.

    Inputs stay quantized; outputs are reals.
    """
    replaced: dict[Operand, Operand] = {}
    operations: list[Operation] = []
    for name, operand in model.inputs.items():
        if operand.type.quantization is not None:
            replaced[operand] = _real(operand)
            operations.append(Dequantize(f"{name}.real", (operand,), (replaced[operand],)))
    for operation in model.operations:
        if not isinstance(operation, Operator):
            operations.append(operation)
            continue
        inputs = tuple(o and _input(o, replaced) for o in operation.inputs)
        outputs = tuple(map(_real, operation.outputs))
        replaced.update(zip(operation.outputs, outputs, strict=True))
        if isinstance(operation, _CONVERSIONS):
            operations.append(Assign(operation.name, inputs[:1], outputs))
        else:
            operations.append(type(operation)(operation.name, inputs, outputs))
    if all(old is new for old, new in replaced.items()):
        return None
    outputs_by_name = {name: _input(o, replaced) for name, o in model.outputs.items()}
    return Model(model.name, model.inputs, operations, outputs_by_name)


def _input(operand: Operand, replaced: dict[Operand, Operand]) -> Operand:
    """Return the operand that replaces an input; a quantized constant becomes one of reals."""
    quantization = operand.type.quantization
    if quantization is not None and operand.value is not None and operand not in replaced:
        array = reals(operand.value, quantization).astype(np.float32)
        replaced[operand] = constant(array, operand.name)
    return replaced.get(operand, operand)


def _real(operand: Operand) -> Operand:
    """Return an operand of reals with the shape of a quantized one; others unchanged."""
    if operand.type.quantization is None:
        return operand
    return Operand(operand.name, TensorType(ElementType.FLOAT32, operand.type.shape))
