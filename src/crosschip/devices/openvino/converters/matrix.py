"""Matrix products."""

from __future__ import annotations

from itertools import zip_longest

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.limits import known_weight
from crosschip.devices.openvino.converters.table import converts, rank_of
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal
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
    return ops.matmul(g[op.x], g[op.y], op.transpose_x, op.transpose_y)


@converts(matrix.FullyConnected, limit=known_weight, nonempty=True)
def fully_connected(g: Graph, op: matrix.FullyConnected) -> Node:
    rows = g[op.input]
    if rank_of(op.input) > 2:
        _, size = op.weight.type.static_shape or ()
        rows = g.reshaped(op.input, [-1, size])
    product = ops.matmul(rows, g[op.weight], False, True)
    return ops.add(product, g[op.bias]) if op.bias else product
