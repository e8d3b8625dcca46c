"""Matrix products and the determinant."""

from __future__ import annotations

import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed
from crosschip.devices.kits.stablehlo.graph import EXACT, Graph, Value
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul

converts(Det)(decomposed)


@converts(MatMul, narrow=True)
def mat_mul(g: Graph, op: MatMul) -> Value:
    (x, y), summed = g.factors(g[op.x], g[op.y])
    if op.transpose_x and x.ndim > 1:
        x = x.swapaxes(-1, -2)
    if op.transpose_y and y.ndim > 1:
        y = y.swapaxes(-1, -2)
    return jnp.matmul(x, y, precision=EXACT, preferred_element_type=summed)


@converts(FullyConnected, narrow=True)
def fully_connected(g: Graph, op: FullyConnected) -> Value:
    (rows, weight), summed = g.factors(g[op.input], g.filters(op.weight))
    rows = rows.reshape(-1, weight.shape[0]) if rows.ndim > 2 else rows
    output = jnp.matmul(rows, weight, precision=EXACT, preferred_element_type=summed)
    return output if op.bias is None else output + g[op.bias].astype(output.dtype)
