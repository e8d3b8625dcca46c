"""Integer products in int32, and in float32 with dynamic scales."""

from __future__ import annotations

from crosschip.importers.facts import rank_of
from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.node import Node, imports
from crosschip.importers.onnx.windows import arguments, image_of, kernel_of, windows_of
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.integers import (
    Conv1DInteger,
    Conv2DInteger,
    Conv3DInteger,
    MatMulInteger,
)
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.quantization import DynamicQuantize

_CONVS = {1: Conv1DInteger, 2: Conv2DInteger, 3: Conv3DInteger}


@imports("MatMulInteger")
def matmul_integer(node: Node) -> Operand:
    return add_integer_product(node, node[0], node[1], node.optional(2), node.optional(3))


@imports(f"{DOMAIN}.MatMulIntegerToFloat")
def matmul_integer_to_float(node: Node) -> Operand:
    """Import MatMulIntegerToFloat: A, B, their scales, their zero points, bias."""
    product = add_integer_product(node, node[0], node[1], node.optional(4), node.optional(5))
    return scale_product(node, product, node[2], node[3], node.optional(6))


@imports(f"{DOMAIN}.DynamicQuantizeMatMul")
def dynamic_quantize_matmul(node: Node) -> Operand:
    """Import DynamicQuantizeMatMul: A in float32, B, its scale, its zero point, bias."""
    integers, scale, zero_point = node.add_all(DynamicQuantize, node[0])
    product = add_integer_product(node, integers, node[1], zero_point, node.optional(3))
    return scale_product(node, product, scale, node[2], node.optional(4))


@imports("ConvInteger")
def conv_integer(node: Node) -> Operand:
    kernel = kernel_of(node, node[1])
    image_of(node[0], len(kernel))
    return node.add(
        _CONVS[len(kernel)],
        node[0],
        node[1],
        input_zero_point=_to_scalar(node, node.optional(2)),
        filter_zero_point=_to_scalar(node, node.optional(3)),
        group=node.integer("group"),
        **arguments(windows_of(node, kernel)),
    )


def add_integer_product(
    node: Node, x: Operand, y: Operand, x_zero: Operand | None, y_zero: Operand | None
) -> Operand:
    """Add an integer matrix product; a list of zero points of `x` has one per row."""
    x_zero, y_zero = _to_scalar(node, x_zero), _to_scalar(node, y_zero)
    if x_zero is not None and rank_of(x_zero) == 1:
        x_zero = node.add(Unsqueeze, x_zero, (-1,))
    return node.add(MatMulInteger, x, y, x_zero, y_zero)


def scale_product(
    node: Node, product: Operand, x_scale: Operand, y_scale: Operand, bias: Operand | None
) -> Operand:
    reals = node.add(Cast, product, ElementType.FLOAT32)
    scale_product = node.add(Mul, reals, node.add(Mul, x_scale, y_scale))
    return scale_product if bias is None else node.add(Add, scale_product, bias)


def _to_scalar(node: Node, zero_point: Operand | None) -> Operand | None:
    if zero_point is None or zero_point.type.static_shape != (1,):
        return zero_point
    return node.add(Reshape, zero_point, ())
