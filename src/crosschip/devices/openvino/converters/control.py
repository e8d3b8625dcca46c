"""Assertions."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.devices.openvino.converters.table import MOVABLE, converts
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.ops.standard.control import Assert


@converts(Assert, types=MOVABLE)
def assert_(g: Graph, op: Assert) -> Sequence[Value]:
    g.require(op, "condition: does not hold", g[op.condition])
    return [g[operand] for operand in op.data]
