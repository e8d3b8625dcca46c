"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import NUMBERS, converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.ops.standard.matrix import MatMul


@converts(MatMul, types=NUMBERS)
def mat_mul(g: Graph, op: MatMul) -> Value:
    return multiply(g, op, g[op.x], g[op.y])


def multiply(g: Graph, op: MatMul, x: Value, y: Value, zero_points: Sequence[Value] = ()) -> Value:
    """Multiply matrices of reals or bytes, or of other integers; integers give int32."""
    x = g.reshape(x, (1, *x.shape)) if x.rank == 1 else _turned(g, x, op.transpose_x)
    y = g.reshape(y, (*y.shape, 1)) if y.rank == 1 else _turned(g, y, op.transpose_y)
    x, y = g.aligned(x, y)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    x = g.broadcast(x, (*batch, *x.shape[-2:]))
    y = g.broadcast(y, (*batch, *y.shape[-2:]))
    if x.dtype is DType.INT32:
        return _of_integers(g, x, y)
    count = prod(batch)
    product = g.matmul(g.reshape(x, (count, *x.shape[-2:])), g.reshape(y, (count, *y.shape[-2:])))
    return g.reshape(product, (*batch, x.shape[-2], y.shape[-1]))


def _turned(g: Graph, value: Value, transposed: bool) -> Value:
    if not transposed:
        return value
    last = value.rank - 1
    return g.transpose(value, (*range(last - 1), last, last - 1))


def _of_integers(g: Graph, x: Value, y: Value) -> Value:
    """Multiply integers of 32 bits, which TOSA's matrix product does not take."""
    left = g.reshape(x, (*x.shape, 1))
    right = g.reshape(y, (*y.shape[:-2], 1, *y.shape[-2:]))
    products = g.product(left, right)
    return g.reduce(Op.REDUCE_SUM, products, [products.rank - 2])
