"""Matrix products and determinants."""

from __future__ import annotations

from crosschip.devices.kits.limits import known_weight
from crosschip.devices.kits.onnx.converters.table import (
    FLOAT_TYPES,
    converts,
    needs_rank,
    rank_of,
    same,
)
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard import matrix

_UNSIGNED = frozenset({ElementType.UINT32, ElementType.UINT64})


def _matmul_limit(op: matrix.MatMul) -> Refusal | None:
    element_type = op.x.type.element_type
    if element_type in _UNSIGNED and op.x.type.static_shape is None:
        # Quirk unsigned-sums-over-nothing.
        return Refusal("x", f"an open size with {element_type}", Rule.SHAPE)
    if not (op.transpose_x or op.transpose_y):
        return None
    unknown = needs_rank("x", op.x) or needs_rank("y", op.y)
    # Quirk transposed-times-vector.
    wrong = not unknown and op.transpose_x and rank_of(op.x) > rank_of(op.y) == 1
    return Refusal("transpose_x", "with a y of one axis") if wrong else unknown


@converts(
    matrix.MatMul, types=FLOAT_TYPES | INDICES | _UNSIGNED, limit=_matmul_limit, nonempty=True
)
def matmul(g: Graph, op: matrix.MatMul) -> str:
    return g.add("MatMul", g[op.x], g[op.y])


@converts(matrix.FullyConnected, limit=known_weight)
def fully_connected(g: Graph, op: matrix.FullyConnected) -> str:
    bias = g[op.bias] if op.bias else ""
    if op.bias and op.bias.type.static_shape is None:
        # Gemm would broadcast a bias of one element.
        channels = (op.weight.type.static_shape or ())[0]
        bias = g.add("Reshape", bias, g.int64([channels]))
    return g.add("Gemm", g[op.input], g[op.weight], bias, transB=1)


converts(matrix.Det, types={ElementType.FLOAT32})(same("Det"))


def _matmul_n_bits_limit(op: matrix.MatMulNBits) -> Refusal | None:
    if op.weight.value is None or op.scale.value is None:
        return Refusal("weight", "ONNX Runtime takes constants only", Rule.COMPUTED)
    if op.bits == 2 or op.block_size < 16 or op.block_size & (op.block_size - 1):
        return Refusal("block_size", "ONNX Runtime has 4 or 8 bits, in blocks of 16, 32, …")
    zeros = None if op.zero_point is None else op.zero_point.type.element_type
    if op.bits == 8 and zeros not in (None, ElementType.UINT8):
        return Refusal("zero_point", "reals, with 8 bits")
    return None


@converts(
    matrix.MatMulNBits,
    types={ElementType.FLOAT32, ElementType.UINT8},
    limit=_matmul_n_bits_limit,
    nonempty=True,
)
def matmul_n_bits(g: Graph, op: matrix.MatMulNBits) -> str:
    rows, _, _ = op.weight.type.static_shape or ()
    optional = [g[operand] if operand else "" for operand in (op.zero_point, op.bias)]
    inputs = [g[op.x], g[op.weight], g[op.scale], optional[0]]
    if op.bias:
        inputs += ["", optional[1]]
    sizes = {"K": op.size, "N": rows, "bits": op.bits, "block_size": op.block_size}
    return g.add_contributed("MatMulNBits", *inputs, accuracy_level=op.accuracy_level, **sizes)
