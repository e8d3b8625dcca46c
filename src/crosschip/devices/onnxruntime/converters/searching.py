"""Greatest and least elements, and running sums."""

from __future__ import annotations

import numpy as np

from crosschip.devices.onnxruntime.converters.table import FLOAT_TYPES, converts
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard.reduction import CumSum
from crosschip.ops.standard.searching import ArgExtreme, ArgMax, ArgMin, TopK

_COMPARED = FLOAT_TYPES | INDICES | {ElementType.INT8, ElementType.UINT8}


# Of no elements, ONNX Runtime keeps the axis, whatever it is told.
@converts(ArgMax, ArgMin, types=_COMPARED, nonempty=True)
def arg_extreme(g: Graph, op: ArgExtreme) -> str:
    node = "ArgMax" if isinstance(op, ArgMax) else "ArgMin"
    last, keep = int(op.select_last), int(op.keepdim)
    found = g.add(node, g[op.input], axis=op.axis, keepdims=keep, select_last_index=last)
    return g.cast(found, op.dtype.dtype)


@converts(TopK, types=_COMPARED | {ElementType.INT16}, computed=["k"])
def top_k(g: Graph, op: TopK) -> list[str]:
    count = g.indices(op.operand("k"))
    parts = g.add_all("TopK", 2, g[op.input], count, axis=op.axis, largest=int(op.largest))
    return [parts[0], g.cast(parts[1], op.return_indices_dtype.dtype)]


@converts(CumSum, types=FLOAT_TYPES | INDICES, computed=["axis"])
def cum_sum(g: Graph, op: CumSum) -> str:
    axis = op.operand("axis")
    place = g.add("Reshape", g.indices(axis), g.int64([])) if axis else g.constant(np.array(-1))
    flags = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    return g.add("CumSum", g[op.input], place, **flags)
