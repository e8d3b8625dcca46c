"""Products of bytes: in int32, and in float32 with scales that are computed."""

from __future__ import annotations

from crosschip.importers.onnx.contributed import DOMAIN
from crosschip.importers.onnx.facts import rank_of
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
    return product_of_integers(node, node[0], node[1], node.optional(2), node.optional(3))


@imports(f"{DOMAIN}.MatMulIntegerToFloat")
def matmul_integer_to_float(node: Node) -> Operand:
    """The inputs are A, B, their scales, their zero points and a bias."""
    product = product_of_integers(node, node[0], node[1], node.optional(4), node.optional(5))
    return scaled(node, product, node[2], node[3], node.optional(6))


@imports(f"{DOMAIN}.DynamicQuantizeMatMul")
def dynamic_quantize_matmul(node: Node) -> Operand:
    """The inputs are A, which is float32, B, its scale, its zero point and a bias."""
    integers, scale, zero_point = node.add_all(DynamicQuantize, node[0])
    product = product_of_integers(node, integers, node[1], zero_point, node.optional(3))
    return scaled(node, product, scale, node[2], node.optional(4))


@imports("ConvInteger")
def conv_integer(node: Node) -> Operand:
    kernel = kernel_of(node, node[1])
    image_of(node[0], len(kernel))
    return node.add(
        _CONVS[len(kernel)],
        node[0],
        node[1],
        input_zero_point=_single(node, node.optional(2)),
        filter_zero_point=_single(node, node.optional(3)),
        group=node.integer("group"),
        **arguments(windows_of(node, kernel)),
    )


def product_of_integers(
    node: Node, x: Operand, y: Operand, x_zero: Operand | None, y_zero: Operand | None
) -> Operand:
    """The product of integers; several zero points of `x` are one a row."""
    x_zero, y_zero = _single(node, x_zero), _single(node, y_zero)
    if x_zero is not None and rank_of(x_zero) == 1:
        x_zero = node.add(Unsqueeze, x_zero, (-1,))
    return node.add(MatMulInteger, x, y, x_zero, y_zero)


def scaled(
    node: Node, product: Operand, x_scale: Operand, y_scale: Operand, bias: Operand | None
) -> Operand:
    reals = node.add(Cast, product, ElementType.FLOAT32)
    scaled = node.add(Mul, reals, node.add(Mul, x_scale, y_scale))
    return scaled if bias is None else node.add(Add, scaled, bias)


def _single(node: Node, zero_point: Operand | None) -> Operand | None:
    """A zero point, without axes if it is one number."""
    if zero_point is None or zero_point.type.static_shape != (1,):
        return zero_point
    return node.add(Reshape, zero_point, ())
