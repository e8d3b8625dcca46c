"""Chains of small matrix products, which OpenVINO fuses into one kernel, some of them wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ir.types import INDICES, QUANTIZABLE
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.layout import Squeeze, Unsqueeze
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.passes.rewrite_operations import rebuild

_STEPS = QUANTIZABLE - INDICES
"""The element types that only quantized tensors have."""

_MOST = 256
"""The number of columns up to which OpenVINO fuses products."""


def with_another_axis(b: Builder, op: FullyConnected | MatMul) -> Sequence[Operand]:
    """Multiply matrices with an additional axis of size 1, so that products are not fused.

    OpenVINO (`TokenizeMLPSeqSnippets`) fuses products of few rows. Quantized ones compute garbage;
    one that is both read and an output makes compilation die or fail. Seen with 2026.4.1 for 4, 6
    and 8 rows on two processors; 1,500 chains of floats without such an output were right.
    """
    if isinstance(op, MatMul):
        return (b.add(Squeeze, rebuild(b, op, x=b.add(Unsqueeze, op.x, (0,))), (0,)),)
    product = b.add(MatMul, b.add(Unsqueeze, op.input, (0,)), op.weight, transpose_y=True)
    result = b.add(Add, product, op.bias) if op.bias else product
    return (b.add(Squeeze, result, (0,)),)


def wrongly_chained_products(model: Model) -> frozenset[Operation]:
    """Return the small products that depend on others, if OpenVINO would fuse them wrongly.

    Quirks `chained-output`, `chained-bytes`.
    """
    products: set[Operation] = set()
    results: set[Operand] = set()
    for operation in model.operations:
        small = isinstance(operation, FullyConnected | MatMul) and all(
            map(_is_small, (operation.inputs[1], operation.outputs[0]))
        )
        follows = not results.isdisjoint(filter(None, operation.inputs))
        if small and follows:
            products.add(operation)
        if small or follows:
            results.update(operation.outputs)
    if products and (_is_quantized(model) or _is_read_and_returned(model, results)):
        return frozenset(products)
    return frozenset()


def _is_small(operand: Operand | None) -> bool:
    shape = None if operand is None else operand.type.static_shape
    return shape is not None and len(shape) == 2 and shape[-1] <= _MOST


def _is_quantized(model: Model) -> bool:
    """Return whether any tensor of the model is quantized."""
    return any(
        operand is not None and operand.type.element_type in _STEPS
        for operation in model.operations
        for operand in (*operation.inputs, *operation.outputs)
    )


def _is_read_and_returned(model: Model, operands: set[Operand]) -> bool:
    """Return whether one of the operands is both read and an output of the model."""
    read = {operand for operation in model.operations for operand in operation.inputs}
    return not operands.isdisjoint(read.intersection(model.outputs.values()))
