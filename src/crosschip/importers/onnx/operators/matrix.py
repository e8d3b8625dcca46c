"""Matrix products."""

from __future__ import annotations

from crosschip.importers.onnx.node import Node, imports
from crosschip.ir import Operand
from crosschip.ir.types import FLOATS
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul


@imports("MatMul")
def matmul(node: Node) -> Operand:
    return node.add(MatMul, node[0], node[1])


@imports("Det")
def determinant(node: Node) -> Operand:
    return node.add(Det, node[0])


@imports("Gemm")
def gemm(node: Node) -> Operand:
    """`alpha * A @ B + beta * C`: a fully connected layer where it has the form of one."""
    a, b, c = node[0], node[1], node.optional(2)
    alpha, beta = node.real("alpha"), node.real("beta")
    trans_a, trans_b = node.flag("transA"), node.flag("transB")
    if (alpha, trans_a, trans_b) == (1, False, True) and _is_layer(a, b, c, beta):
        return node.add(FullyConnected, a, b, c)
    product = node.add(MatMul, a, b, trans_a, trans_b)
    if alpha != 1:
        product = node.add(Mul, product, alpha)
    if c is None or beta == 0:
        return product
    return node.add(Add, product, c if beta == 1 else node.add(Mul, c, beta))


def _is_layer(a: Operand, b: Operand, c: Operand | None, beta: float) -> bool:
    """Tell whether `a` is a list of rows, `b` a list of units, and `c` a number for each unit."""
    rows, units = a.type.shape, b.type.shape
    if a.type.element_type not in FLOATS or not rows or not units or len(rows) != 2:
        return False
    return c is None or (beta == 1 and c.type.shape == units[:1])
