"""Pooling over a grid of cells."""

from __future__ import annotations

from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import FLOAT_TYPES, converts
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.ir.types import INDICES
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool,
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    AdaptiveMaxPool,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)


@converts(
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
    types=FLOAT_TYPES | INDICES,
    nonempty=True,
)
def adaptive_max_pool(g: Graph, op: AdaptiveMaxPool) -> list[Value]:
    g.some(op, op.image_axes())
    pooled = ops.adaptive_max_pool(g[op.input], g.int64(op.output_shape), "i32")
    indices = ops.convert(pooled.output(1), TYPES[op.return_indices_dtype])
    return [pooled.output(0), indices][: len(op.outputs)]


@converts(AdaptiveAveragePool1D, AdaptiveAveragePool2D, AdaptiveAveragePool3D, nonempty=True)
def adaptive_average_pool(g: Graph, op: AdaptiveAveragePool) -> Value:
    g.some(op, op.image_axes())
    if op.is_global():
        return ops.reduce_mean(g[op.input], g.int64(op.image_axes()), True)
    return ops.adaptive_avg_pool(g[op.input], g.int64(op.output_shape))
