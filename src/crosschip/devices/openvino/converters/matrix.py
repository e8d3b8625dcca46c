"""Matrix products."""

from __future__ import annotations

from itertools import zip_longest

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import converts, rank_of
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal
from crosschip.hal.limits import known_weight
from crosschip.ir import Operand
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import matrix


def _batches(op: matrix.MatMul) -> Refusal | None:
    """OpenVINO does not stretch a batch that is known only at run time to that of a constant."""
    for slot, known, other in (("y", op.y, op.x), ("x", op.x, op.y)):
        if known.value is not None and other.type.static_shape is None:
            wanted, sizes = known.value.shape[-3::-1], (other.type.shape or ())[-3::-1]
            if any(a not in (1, b) for a, b in zip_longest(wanted, sizes, fillvalue=1)):
                return Refusal(
                    slot, "a constant to whose batch the other one may have to be stretched"
                )
    return None


@converts(matrix.MatMul, limit=_batches, nonempty=True)
def matmul(g: Graph, op: matrix.MatMul) -> Node:
    depth_x, depth_y = _depths(op)
    _alike(g, op, "y", (op.x, depth_x), (op.y, depth_y))
    return ops.matmul(g[op.x], g[op.y], op.transpose_x, op.transpose_y)


def _depths(op: matrix.MatMul) -> tuple[int, int]:
    """The axes along which the products are summed."""
    rank_x, rank_y = rank_of(op.x), rank_of(op.y)
    return (
        rank_x - 2 if op.transpose_x and rank_x > 1 else rank_x - 1,
        rank_y - 2 if not op.transpose_y and rank_y > 1 else rank_y - 1,
    )


def _alike(
    g: Graph, op: Operator, slot: str, one: tuple[Operand, int], other: tuple[Operand, int]
) -> None:
    """Refuse runs in which two axes differ: OpenVINO reads beyond the end of the shorter one."""
    sizes = [(operand.type.shape or ())[axis] for operand, axis in (one, other)]
    if sizes[0] != sizes[1]:
        same = ops.equal(g.size(*one), g.size(*other))
        g.require(op, f"{slot}: has another number of elements to sum over", same)


@converts(matrix.FullyConnected, limit=known_weight, nonempty=True)
def fully_connected(g: Graph, op: matrix.FullyConnected) -> Node:
    rows = g[op.input]
    if rank_of(op.input) > 2:
        _, size = op.weight.type.static_shape or ()
        rows = g.reshaped(op.input, [-1, size])
    else:
        _alike(g, op, "weight", (op.input, 1), (op.weight, 1))
    product = ops.matmul(rows, g[op.weight], False, True)
    return ops.add(product, g[op.bias]) if op.bias else product
