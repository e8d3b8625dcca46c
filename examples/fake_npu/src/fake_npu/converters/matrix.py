"""Products of matrices, of which the second is constant."""

from __future__ import annotations

import math

import numpy as np

from crosschip.hal import Refusal, Rule
from crosschip.ir import Array, Operand
from crosschip.ops import Operator as Operation
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from fake_npu.assembly import Assembly
from fake_npu.converters.table import bytes_in, constant, converters, weighted
from fake_npu_ddk import Operator


def _matrix(op: MatMul) -> Refusal | None:
    for slot, operand in (("x", op.x), ("y", op.y)):
        if len(operand.type.shape or ()) < 2 or (slot == "y" and len(operand.type.shape or ()) > 2):
            return Refusal(slot, f"has {len(operand.type.shape or ())} axes", Rule.SHAPE)
    if op.transpose_x:
        return Refusal("transpose_x", "is not done")
    return constant(op, "y")


@converters.converts(MatMul, limit=_matrix, quantized=bytes_in("x", "y"))
def mat_mul(g: Assembly, op: MatMul) -> int:
    matrix = np.asarray(op.y.value)
    return _product(g, op, op.x, op.y, matrix.T if op.transpose_y else matrix, None)


@converters.converts(
    FullyConnected,
    limit=lambda op: constant(op, "weight", "bias"),
    quantized=weighted("input", "weight"),
)
def fully_connected(g: Assembly, op: FullyConnected) -> int:
    return _product(g, op, op.input, op.weight, np.asarray(op.weight.value).T, op.bias)


def _product(
    g: Assembly,
    op: Operation,
    left: Operand,
    right: Operand,
    matrix: Array,
    bias: Operand | None,
) -> int:
    """Rows times a matrix, both sides being given the axes that the model has."""
    shape, made = left.type.static_shape or (), op.outputs[0].type.static_shape or ()
    rows = g.plain(left)
    if len(shape) > 2:
        rows = g.shaped(rows, (math.prod(shape) // len(matrix), len(matrix)), left)
    constants = [g.weights(right, matrix), g.bias(bias, matrix.shape[1], left, right)]
    flat = (math.prod(made[:-1]), made[-1])
    product = g.add(Operator.FULLY_CONNECTED, [rows, *constants], op, shape=flat)
    return product if made == flat else g.shaped(product, made, op.outputs[0])
