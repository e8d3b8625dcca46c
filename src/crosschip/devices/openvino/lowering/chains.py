"""Chains of small matrix products, which OpenVINO makes one kernel of, and some of them wrong."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ir.types import INDICES, QUANTIZABLE
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.layout import Squeeze, Unsqueeze
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.passes.rewrite_operations import rebuild

_STEPS = QUANTIZABLE - INDICES
"""The types of quantized tensors, where there are any."""

_MOST = 256
"""The size of matrices up to which OpenVINO joins their products."""


def with_another_axis(b: Builder, op: FullyConnected | MatMul) -> Sequence[Operand]:
    """Multiply matrices that have one more axis, of size 1.

    Of matrix products one after another (`TokenizeMLPSeqSnippets`), with few rows, OpenVINO
    computes garbage where they are quantized; where a result is both read and an output, the
    process dies while compiling, or the model is refused. Seen with 2026.4.1 for 4, 6 and 8 rows on
    two processors; 1,500 chains of reals without such an output were right. It looks for matrices
    only: with one more axis, a product joins no other.
    """
    if isinstance(op, MatMul):
        return (b.add(Squeeze, rebuild(b, op, x=b.add(Unsqueeze, op.x, (0,))), (0,)),)
    product = b.add(MatMul, b.add(Unsqueeze, op.input, (0,)), op.weight, transpose_y=True)
    result = b.add(Add, product, op.bias) if op.bias else product
    return (b.add(Squeeze, result, (0,)),)


def wrongly_chained_products(model: Model) -> frozenset[Operation]:
    """The small products that are made, by whatever is between, of others, if that goes wrong.

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
