"""Matrix products."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import openvino
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import known_weight
from crosschip.devices.openvino.conditions import equal
from crosschip.devices.openvino.converters.table import EXACT, FLOAT_TYPES, converts, rank_of
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import INDICES
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import matrix


def _check_batches(op: matrix.MatMul) -> Refusal | None:
    """Refuse constants of a larger batch than the other operand (quirk `stretched-batch`)."""
    for slot, operand, other in (("y", op.y, op.x), ("x", op.x, op.y)):
        if operand.value is not None and other.type.static_shape is None:
            batch, sizes = operand.value.shape[-3::-1], (other.type.shape or ())[-3::-1]
            if any(a not in (1, b) for a, b in zip_longest(batch, sizes, fillvalue=1)):
                return Refusal(
                    slot, "a constant to whose batch the other one may have to be stretched"
                )
    return None


# Quirk `product-of-large-integers`.
@converts(
    matrix.MatMul, types=FLOAT_TYPES | INDICES, limit=_check_batches, nonempty=True, bits=EXACT
)
def matmul(g: Graph, op: matrix.MatMul) -> Node:
    depth_x, depth_y = _depths(op)
    require_same_size(g, op, "y", (op.x, depth_x), (op.y, depth_y))
    return ops.matmul(g[op.x], g[op.y], op.transpose_x, op.transpose_y)


def _check_constants(op: matrix.MatMulNBits) -> Refusal | None:
    for slot, operand in (
        ("weight", op.weight),
        ("scale", op.scale),
        ("zero_point", op.zero_point),
    ):
        if operand is not None and operand.value is None:
            return Refusal(slot, "is computed at run time, but must be constant here")
    if op.x.value is not None:
        return Refusal("x", "is constant, and OpenVINO fails to compute what it knows")
    return Refusal("bits", "2") if op.bits == 2 else None


@converts(
    matrix.MatMulNBits,
    types={ElementType.FLOAT32, ElementType.UINT8},
    limit=_check_constants,
    nonempty=True,
)
def matmul_n_bits(g: Graph, op: matrix.MatMulNBits) -> Node:
    """Convert a product with packed weights, which stay packed as OpenVINO's u4 and u8."""
    if not isinstance((op.x.type.shape or ())[-1], int):
        rule = "x: its last size, and `size`"
        if not g.require_sizes(op, rule, [equal((op.x.type.shape or ())[-1], op.size)]):
            g.require(op, rule, ops.equal(g.size(op.x, -1), g.scalar(op.size)))
    rows, blocks, _ = op.weight.type.static_shape or ()
    steps = ops.convert(_integers(g, op, op.weight, (rows, blocks, op.block_size)), "f32")
    if op.zero_point is None:
        zeros = ops.convert(g.constant(np.array(2 ** (op.bits - 1), np.uint8)), "f32")
    elif op.zero_point.type.element_type is ElementType.UINT8:
        packed = op.zero_point.value
        assert packed is not None, "it is constant"
        shifts = np.arange(0, 8, op.bits, dtype=np.uint8)
        numbers = (packed[..., None] >> shifts & (2**op.bits - 1)).reshape(rows, -1)[:, :blocks]
        zeros = ops.convert(g.constant(numbers[..., None]), "f32")
    else:
        zeros = g.reshaped(op.zero_point, (rows, blocks, 1))
    reals = ops.multiply(ops.subtract(steps, zeros), g.reshaped(op.scale, (rows, blocks, 1)))
    weight = ops.reshape(reals, g.int64([rows, blocks * op.block_size]), False)
    if blocks * op.block_size != op.size:
        ends = (g.int64([n]) for n in (0, op.size, 1, 1))
        weight = ops.slice(weight, *ends)
    product = ops.matmul(g[op.x], weight, False, True)
    return ops.add(product, g[op.bias]) if op.bias else product


def _integers(g: Graph, op: matrix.MatMulNBits, packed: Operand, shape: tuple[int, ...]) -> Node:
    """Return the packed weights as u4 or u8, in this shape."""
    if op.bits == 8:
        return g.reshaped(packed, shape)
    array = packed.value
    assert array is not None, "it is constant"
    g.constant_arrays.append(np.ascontiguousarray(array))
    tensor = openvino.Tensor(g.constant_arrays[-1], openvino.Shape(shape), openvino.Type.u4)
    return openvino.op.Constant(tensor, shared_memory=True)


def _depths(op: matrix.MatMul) -> tuple[int, int]:
    """Return the axes along which products are summed."""
    rank_x, rank_y = rank_of(op.x), rank_of(op.y)
    return (
        rank_x - 2 if op.transpose_x and rank_x > 1 else rank_x - 1,
        rank_y - 2 if not op.transpose_y and rank_y > 1 else rank_y - 1,
    )


def require_same_size(
    g: Graph, op: Operator, slot: str, a: tuple[Operand, int], b: tuple[Operand, int]
) -> None:
    """Refuse runs in which two axes differ in size (quirk `sums-of-different-lengths`)."""
    sizes = [(operand.type.shape or ())[axis] for operand, axis in (a, b)]
    if not g.open_sizes.are_same(*sizes):
        rule = f"{slot}: has another number of elements to sum over"
        if not g.require_sizes(op, rule, [equal(*sizes)]):
            g.require(op, rule, ops.equal(g.size(*a), g.size(*b)))
        g.open_sizes.take_for_same(*sizes)


@converts(matrix.FullyConnected, limit=known_weight, nonempty=True)
def fully_connected(g: Graph, op: matrix.FullyConnected) -> Node:
    require_same_size(g, op, "weight", (op.input, 1), (op.weight, 1))
    product = ops.matmul(g[op.input], g[op.weight], False, True)
    return ops.add(product, g[op.bias]) if op.bias else product
