"""What stops a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.devices.kits.onnx.converters.table import MOVABLE, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.ops.standard.control import Assert


@converts(Assert, types=MOVABLE)
def assert_(g: Graph, op: Assert) -> Sequence[str]:
    # ONNX has no such operator. The only row of the data is asked for by the number of elements
    # that are false, and ONNX Runtime refuses a row that there is not.
    broken = g.cast(g.add("Not", g[op.condition]), np.int64)
    row = g.add("ReduceSum", broken, keepdims=0)
    first = g.constant(np.zeros(1, np.int64))
    return [g.add("Gather", g.add("Unsqueeze", g[operand], first), row) for operand in op.data]
