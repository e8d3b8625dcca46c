"""A product of matrices and the sum behind it, which tools leave unrounded: one operation on bytes.

`crosschip.devices.kits.onnx.units` finds single operators between conversions. This is a pattern
of the vendor's own: it looks for `MAT_MUL` → `ADD` between conversions, since the chip has both in
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.devices.kits.onnx.units import Unit
from crosschip.ir import Model, Operand, Operation, constant
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.arithmetic import Add, Clip
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.quantization import Dequantize, Quantize

Readers = Mapping[Operand, Sequence[Operation]]


def products(model: Model) -> list[Unit]:
    """The products with sums of a quantized model."""
    readers = _readers(model)
    found = [_product(model, readers, op) for op in model.operations if isinstance(op, Add)]
    return [unit for unit in found if unit is not None]


def _product(model: Model, readers: Readers, total: Add) -> Unit | None:
    """The product whose sum an operation is, if it is one."""
    makers = [model.producers.get(operand) for operand in (total.input0, total.input1)]
    product = next((maker for maker in makers if isinstance(maker, MatMul)), None)
    bias = next((maker for maker in makers if isinstance(maker, Dequantize)), None)
    if product is None or bias is None or total.fused is not Fuse.NONE:
        return None
    rows, matrix = (model.producers.get(operand) for operand in (product.x, product.y))
    behind = _behind(model, readers, total)
    only = readers[product.outputs[0]] == [total] and not _is_kept(model, product)
    if not (isinstance(rows, Dequantize) and isinstance(matrix, Dequantize) and behind and only):
        return None
    if not (_is_constant(matrix, 2) and _is_constant(bias, 1)) or product.transpose_x:
        return None
    if len(rows.input.type.shape or ()) != 2:
        return None
    elements = np.asarray(matrix.input.value)
    turned = elements if product.transpose_y else np.ascontiguousarray(elements.T)
    weight = constant(turned, matrix.input.name, matrix.input.type.quantization)
    inputs = FullyConnected.bind(total.name, (rows.input, weight, bias.input), {})
    whole = FullyConnected(total.name, inputs, behind[-1].outputs)
    return Unit((rows, matrix, bias, product, total, *behind), whole)


def _behind(model: Model, readers: Readers, operation: Operation) -> list[Operation]:
    """The activations behind an operation and the `QUANTIZE` that ends them, or nothing."""
    found: list[Operation] = []
    while not _is_kept(model, operation):
        after = readers.get(operation.outputs[0], ())
        if len(after) != 1:
            return []
        (operation,) = after
        found.append(operation)
        if isinstance(operation, Quantize):
            return found
        if not isinstance(operation, Relu | Relu6 | Clip):
            return []
    return []


def _is_kept(model: Model, operation: Operation) -> bool:
    return operation.outputs[0] in model.outputs.values()


def _is_constant(source: Dequantize, rank: int) -> bool:
    return source.input.is_constant and len(source.input.type.shape or ()) == rank


def _readers(model: Model) -> Readers:
    found: dict[Operand, list[Operation]] = {}
    for operation in model.operations:
        for operand in dict.fromkeys(operation.inputs):
            if operand is not None:
                found.setdefault(operand, []).append(operation)
    return found
