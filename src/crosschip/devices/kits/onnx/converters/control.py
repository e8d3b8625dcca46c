"""Assertions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.standard.control import Assert


@converts(Assert, types=MOVABLE)
def assert_(g: Graph, op: Assert) -> Sequence[str]:
    # ONNX has no such operator. Gather reads row 0 of the data, at the index of the number of false
    # elements; ONNX Runtime refuses an index out of range.
    failures = g.cast(g.add("Not", g[op.condition]), np.int64)
    row = g.add("ReduceSum", failures, keepdims=0)
    first = g.constant(np.zeros(1, np.int64))
    return [g.add("Gather", g.add("Unsqueeze", g[operand], first), row) for operand in op.data]
