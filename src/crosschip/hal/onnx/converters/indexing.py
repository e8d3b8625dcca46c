"""Reading and writing at given places."""

from __future__ import annotations

import numpy as np

from crosschip.hal import Refusal, Rule
from crosschip.hal.onnx.converters.table import MOVABLE, converts
from crosschip.hal.onnx.graph import Graph
from crosschip.ir import ElementType
from crosschip.ops.standard import indexing
from crosschip.ops.standard.indexing import (
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
)

_REDUCTIONS = {
    Scatter.NONE: "none",
    Scatter.ADD: "add",
    Scatter.MUL: "mul",
    Scatter.MAX: "max",
    Scatter.MIN: "min",
}


@converts(GatherND, types=MOVABLE, nonempty=True)
def gather_nd(g: Graph, op: GatherND) -> str:
    indices = g.cast(g[op.indices], np.int64)
    return g.add("GatherND", g[op.input], indices, batch_dims=op.batch_dims)


@converts(GatherElements, types=MOVABLE)
def gather_elements(g: Graph, op: GatherElements) -> str:
    return g.add("GatherElements", g[op.input], g[op.indices], axis=op.axis)


def _combined(op: ScatterND | ScatterElements) -> Refusal | None:
    is_half = op.input.type.element_type is ElementType.FLOAT16
    return (
        Refusal("reduction", "of float16", Rule.ELEMENT_TYPE)
        if is_half and op.reduction is not Scatter.NONE
        else None
    )


@converts(ScatterND, types=MOVABLE, limit=_combined)
def scatter_nd(g: Graph, op: ScatterND) -> str:
    indices, reduction = g.cast(g[op.indices], np.int64), _REDUCTIONS[op.reduction]
    return g.add("ScatterND", g[op.input], indices, g[op.updates], reduction=reduction)


@converts(ScatterElements, types=MOVABLE, limit=_combined)
def scatter_elements(g: Graph, op: ScatterElements) -> str:
    inputs, reduction = (g[op.input], g[op.indices], g[op.updates]), _REDUCTIONS[op.reduction]
    return g.add("ScatterElements", *inputs, axis=op.axis, reduction=reduction)


@converts(indexing.Gather, types=MOVABLE)
def gather(g: Graph, op: indexing.Gather) -> str:
    return g.add("Gather", g[op.input], g[op.indices], axis=op.axis)
