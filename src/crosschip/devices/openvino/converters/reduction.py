"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import some_elements
from crosschip.devices.openvino.converters.table import (
    EXACT,
    FLOAT_TYPES,
    INTEGER_TYPES,
    NUMBERS,
    converts,
    rank_of,
)
from crosschip.devices.openvino.graph import Graph
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS, FLOATS, INDICES
from crosschip.ops.standard.reduction import (
    CumSum,
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


def reduce(function: Callable[..., Node]) -> Callable[[Graph, Reduction], Node]:
    """Return a converter to an OpenVINO reduction."""

    def convert(g: Graph, op: Reduction) -> Node:
        axes = op.axes or range(rank_of(op.input))
        return function(g[op.input], g.int64(axes), op.keepdim)

    return convert


def reduce_some(
    function: Callable[..., Node], none: Callable[[ElementType], float]
) -> Callable[[Graph, Reduction], Node]:
    """Return a converter with the right result for no elements.

    Quirks `greatest-of-nothing`, `mean-of-nothing`.

    Args:
        function: the reduction.
        none: the result for no elements, by element type.
    """

    def convert(g: Graph, op: Reduction) -> Node:
        shape = op.input.type.shape or ()
        result = reduce(function)(g, op)
        for axis in op.axes or range(len(shape)):
            if not isinstance(shape[axis], int):
                some = ops.greater(g.size(op.input, axis), g.scalar(0))
                value = none(op.input.type.element_type)
                result = ops.select(some, result, g.number(value, op.input))
        return result

    return convert


def _lowest(element_type: ElementType) -> float:
    return -np.inf if element_type in FLOATS else np.iinfo(element_type.dtype).min


def _highest(element_type: ElementType) -> float:
    return np.inf if element_type in FLOATS else np.iinfo(element_type.dtype).max


# Quirk `sum-of-large-integers`.
converts(ReduceSum, types=FLOAT_TYPES | INDICES, bits=EXACT)(reduce(ops.reduce_sum))
converts(ReduceProd, types=FLOAT_TYPES | INTEGER_TYPES)(reduce(ops.reduce_prod))
converts(ReduceMax, types=NUMBERS, limit=some_elements, bits=EXACT)(
    reduce_some(ops.reduce_max, _lowest)
)
converts(ReduceMin, types=NUMBERS, limit=some_elements, bits=EXACT)(
    reduce_some(ops.reduce_min, _highest)
)
converts(ReduceMean, limit=some_elements)(reduce_some(ops.reduce_mean, lambda _: np.nan))
converts(ReduceL1)(reduce(ops.reduce_l1))
converts(ReduceL2)(reduce(ops.reduce_l2))
converts(ReduceAll, types=BOOLEANS)(reduce(ops.reduce_logical_and))
converts(ReduceAny, types=BOOLEANS)(reduce(ops.reduce_logical_or))


@converts(CumSum, types=NUMBERS)
def cum_sum(g: Graph, op: CumSum) -> Node:
    return ops.cum_sum(g[op.input], g.scalar(op.axis), op.exclusive, op.reverse)
