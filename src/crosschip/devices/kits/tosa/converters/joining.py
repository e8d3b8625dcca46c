"""Operators that join tensors."""

from __future__ import annotations

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.ops.standard.joining import Concat


@converts(Concat)
def concat(g: Graph, op: Concat) -> Value:
    parts = [g[part] for part in op.parts]
    return g.concat(parts, op.axis % parts[0].rank)
