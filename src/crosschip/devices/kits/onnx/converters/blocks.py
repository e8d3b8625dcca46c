"""Rearrangement between channels and blocks of pixels."""

from __future__ import annotations

from crosschip.devices.kits.onnx.converters.table import FLOAT_TYPES, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.standard.blocks import DepthToSpace, SpaceToDepth


@converts(DepthToSpace, types=FLOAT_TYPES)
def depth_to_space(g: Graph, op: DepthToSpace) -> str:
    return g.add("DepthToSpace", g[op.input], blocksize=op.block_size, mode=op.mode.name)


@converts(SpaceToDepth, types=FLOAT_TYPES)
def space_to_depth(g: Graph, op: SpaceToDepth) -> str:
    return g.add("SpaceToDepth", g[op.input], blocksize=op.block_size)
