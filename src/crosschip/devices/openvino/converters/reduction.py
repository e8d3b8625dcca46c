"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.limits import some_elements
from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    INTEGER_TYPES,
    converts,
    rank_of,
    sizes_only,
)
from crosschip.devices.openvino.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS
from crosschip.ops.standard.reduction import (
    ReduceAll,
    ReduceAny,
    ReduceL1,
    ReduceL2,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    Reduction,
)

_SHORT = {ElementType.INT16, ElementType.UINT16}


def reduce(function: Callable[..., Node]) -> Callable[[Graph, Reduction], Node]:
    """The converter to an OpenVINO reduction."""

    def convert(g: Graph, op: Reduction) -> Node:
        axes = op.axes or range(rank_of(op.input))
        return function(g[op.input], g.int64(axes), op.keepdim)

    return convert


converts(ReduceSum)(reduce(ops.reduce_sum))
converts(ReduceProd, types=FLOAT_TYPES | INTEGER_TYPES, limit=sizes_only)(reduce(ops.reduce_prod))
# Integers are compared as float32.
converts(ReduceMax, types=FLOAT_TYPES | _SHORT, limit=some_elements)(reduce(ops.reduce_max))
converts(ReduceMin, types=FLOAT_TYPES | _SHORT, limit=some_elements)(reduce(ops.reduce_min))
converts(ReduceMean, limit=some_elements)(reduce(ops.reduce_mean))
converts(ReduceL1)(reduce(ops.reduce_l1))
converts(ReduceL2)(reduce(ops.reduce_l2))
converts(ReduceAll, types=BOOLEANS)(reduce(ops.reduce_logical_and))
converts(ReduceAny, types=BOOLEANS)(reduce(ops.reduce_logical_or))
