"""Matrix products."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tflite.converters.convolution import accumulated, weighted_forms
from crosschip.devices.kits.tflite.converters.table import (
    ACTIVATION,
    WORDS,
    converts,
    rank_of,
    shape_of,
    with_shape,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import Operand
from crosschip.mapping.channels_last import transpose
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import FullyConnected, MatMul

_MAX_RANK = 5


@converts(
    FullyConnected,
    nonempty=True,
    quantized=weighted_forms("weight", 0),
)
def fully_connected(g: Graph, op: FullyConnected) -> Operand:
    bias = op.bias and accumulated(g, op.bias, op.input)
    return add_fully_connected(g, op.input, op.weight, bias, op.outputs[0])


def add_fully_connected(
    g: Graph, input: Operand, weight: Operand, bias: Operand | None, output: Operand
) -> Operand:
    """Add a product with a transposed matrix.

    The axes before the last one stay if the output has them.
    """
    return g.native(
        "FULLY_CONNECTED",
        input,
        weight,
        bias,
        type=output.type,
        keep_num_dims=rank_of(output) > 2,
        asymmetric_quantize_inputs=False,
    )


def _matmul_limit(op: MatMul) -> Refusal | None:
    if min(rank_of(op.x), rank_of(op.y)) < 1 or max(rank_of(op.x), rank_of(op.y)) > _MAX_RANK:
        return Refusal("x", f"has {rank_of(op.x)} axes", Rule.SHAPE)
    return None


@converts(
    MatMul,
    limit=_matmul_limit,
    nonempty=True,
    quantized=[{"x": scheme, "y": scheme, "output": scheme} for scheme in (ACTIVATION, WORDS)],
)
def mat_mul(g: Graph, op: MatMul) -> Operand:
    x, y = op.x, op.y
    transpose_x = op.transpose_x and rank_of(x) > 1
    transpose_y = op.transpose_y and rank_of(y) > 1
    is_layer = y.is_constant and rank_of(y) == 2 and x.type.quantization is None
    if is_layer and rank_of(x) > 1 and not transpose_x:
        weight = y if transpose_y else transpose(g, y, (1, 0))
        return add_fully_connected(g, x, weight, None, op.outputs[0])
    row, column = rank_of(x) == 1, rank_of(y) == 1
    if row:
        x = g.add(Reshape, x, (1, -1))
    if column:
        y = g.add(Reshape, y, (-1, 1))
    left = _swapped(shape_of(x)) if transpose_x else shape_of(x)
    right = _swapped(shape_of(y)) if transpose_y else shape_of(y)
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    output = g.native(
        "BATCH_MATMUL",
        x,
        y,
        type=with_shape(op.outputs[0].type, (*batch, left[-2], right[-1])),
        adj_x=transpose_x,
        adj_y=transpose_y,
        asymmetric_quantize_inputs=False,
    )
    return g.add(Reshape, output, shape_of(op.outputs[0])) if row or column else output


def _swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])
