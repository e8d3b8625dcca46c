"""Pooling over a grid of cells."""

from __future__ import annotations

from crosschip.devices.kits.onnx.converters.table import NARROW_FLOATS, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool,
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
)


def _require_global(op: AdaptiveAveragePool) -> Refusal | None:
    if op.is_global():
        return None
    ones = [1] * op.spatial_rank
    return Refusal("output_shape", f"{list(op.output_shape)}, must be {ones}")


@converts(
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    types=NARROW_FLOATS,
    limit=_require_global,
    nonempty=True,
)
def adaptive_average_pool(g: Graph, op: AdaptiveAveragePool) -> str:
    return g.add("GlobalAveragePool", g[op.input])
