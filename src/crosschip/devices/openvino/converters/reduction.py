"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import some_elements
from crosschip.devices.openvino import instruction_sets
from crosschip.devices.openvino.converters.table import (
    EXACT,
    FLOAT_TYPES,
    INTEGER_TYPES,
    NUMBERS,
    converts,
    rank_of,
)
from crosschip.devices.openvino.graph import Graph, Value
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
    """The converter to an OpenVINO reduction."""

    def convert(g: Graph, op: Reduction) -> Node:
        return _reduced(function, g, op, g[op.input])

    return convert


def _reduced(function: Callable[..., Node], g: Graph, op: Reduction, value: Value) -> Node:
    """A reduction of a value that has the shape of an operation's input."""
    axes = op.axes or range(rank_of(op.input))
    may_mislead = rank_of(op.input) == 3 and op.input.type.element_type not in BOOLEANS
    if may_mislead and op.input in g.scaled:
        value = _apart(value)
    result = function(value, g.int64(axes), op.keepdim)
    misleads = may_mislead and op.outputs[0] in g.meeting_constants
    would_be_mvn = isinstance(op, ReduceMean) and instruction_sets.breaks_mvn()
    return _apart(result) if misleads or would_be_mvn else result


def _apart(value: Value) -> Node:
    """The value itself, which OpenVINO combines with nothing on its other side.

    As it reduces some of three axes, OpenVINO (2026.4) also combines what it makes with constants,
    those of the integers that it reduces in place of reals, too, and takes the wrong channels of
    them, or what lies behind them.
    """
    return ops.maximum(value, value)


def reduce_some(
    function: Callable[..., Node], none: Callable[[ElementType], float], *, loses_nan: bool = True
) -> Callable[[Graph, Reduction], Node]:
    """The converter to an OpenVINO reduction that makes something up of no elements.

    Args:
        function: the reduction.
        none: what no elements give.
        loses_nan: whether it may leave out a NaN.
    """

    def convert(g: Graph, op: Reduction) -> Node:
        shape = op.input.type.shape or ()
        if loses_nan and op.input.type.element_type in FLOATS:
            result = _keeping_nan(function, g, op, none(op.input.type.element_type))
        else:
            result = reduce(function)(g, op)
        for axis in op.axes or range(len(shape)):
            if not isinstance(shape[axis], int):
                some = ops.greater(g.size(op.input, axis), g.scalar(0))
                value = none(op.input.type.element_type)
                result = ops.select(some, result, g.number(value, op.input))
        return result

    return convert


def _keeping_nan(function: Callable[..., Node], g: Graph, op: Reduction, none: float) -> Node:
    """The least or greatest numbers, infinities too; NaN where there is one.

    OpenVINO leaves NaN out, and of infinities alone makes the last number before them. A product
    tells these two: 0 where there are other numbers, 1 where there are none, NaN where one is NaN.
    """
    value = g[op.input]
    zero, one, end = (g.number(number, op.input) for number in (0, 1, none))
    doubts = ops.select(ops.not_equal(value, value), value, zero)
    doubts = ops.select(ops.equal(value, end), one, doubts)
    doubt = _reduced(ops.reduce_prod, g, op, doubts)
    found = _reduced(function, g, op, value)
    return ops.select(ops.equal(doubt, zero), found, ops.multiply(doubt, end))


def _lowest(element_type: ElementType) -> float:
    return -np.inf if element_type in FLOATS else np.iinfo(element_type.dtype).min


def _highest(element_type: ElementType) -> float:
    return np.inf if element_type in FLOATS else np.iinfo(element_type.dtype).max


# Integers are added, and compared, as float32.
converts(ReduceSum, types=FLOAT_TYPES | INDICES, bits=EXACT)(reduce(ops.reduce_sum))
converts(ReduceProd, types=FLOAT_TYPES | INTEGER_TYPES)(reduce(ops.reduce_prod))
converts(ReduceMax, types=NUMBERS, limit=some_elements, bits=EXACT)(
    reduce_some(ops.reduce_max, _lowest)
)
converts(ReduceMin, types=NUMBERS, limit=some_elements, bits=EXACT)(
    reduce_some(ops.reduce_min, _highest)
)
converts(ReduceMean, limit=some_elements)(
    reduce_some(ops.reduce_mean, lambda _: np.nan, loses_nan=False)
)
converts(ReduceL1)(reduce(ops.reduce_l1))
converts(ReduceL2)(reduce(ops.reduce_l2))
converts(ReduceAll, types=BOOLEANS)(reduce(ops.reduce_logical_and))
converts(ReduceAny, types=BOOLEANS)(reduce(ops.reduce_logical_or))


@converts(CumSum, types=NUMBERS)
def cum_sum(g: Graph, op: CumSum) -> Node:
    return ops.cum_sum(g[op.input], g.scalar(op.axis), op.exclusive, op.reverse)
