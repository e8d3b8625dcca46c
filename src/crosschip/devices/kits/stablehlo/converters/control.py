"""Assertions."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.devices.kits.stablehlo.converters.table import converts
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ops.standard.control import Assert


@converts(Assert, narrow=True)
def assert_(g: Graph, op: Assert) -> Sequence[Value]:
    g.require(op, "condition: does not hold", g[op.condition])
    return [g[operand] for operand in op.data]
