"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    EXACT,
    FLOAT_TYPES,
    INTEGER_TYPES,
    NUMBERS,
    converts,
    rank_of,
)
from crosschip.devices.openvino.graph import Graph
from crosschip.hal.limits import some_elements
from crosschip.ir import ElementType, Operand
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
        axes, value = op.axes or range(rank_of(op.input)), g[op.input]
        if rank_of(op.input) == 3 and op.input in g.scaled and _is_real(op.input):
            value = _in_reals(g, op.input)
        if not _is_misread(g, op):
            return function(value, g.int64(axes), op.keepdim)
        front = g.int64([0])
        inside = g.int64([axis % rank_of(op.input) + 1 for axis in axes])
        result = function(ops.unsqueeze(value, front), inside, op.keepdim)
        return ops.squeeze(result, front)

    return convert


def _is_real(operand: Operand) -> bool:
    return operand.type.element_type in FLOATS


def _in_reals(g: Graph, operand: Operand) -> Node:
    """What integers stand for, which it takes reals to compute: the greater of it and -infinity.

    OpenVINO (2026.4) would reduce the integers, and of three axes apply the scales and zero points
    of other channels as it does, or what lies behind them. In this order a NaN stays.
    """
    return ops.maximum(g.number(-np.inf, operand), g[operand])


def _is_misread(g: Graph, op: Reduction) -> bool:
    """Tell whether what is made would be combined with constants of other channels.

    OpenVINO (2026.4) computes such combinations as it reduces, and takes the wrong channels, or
    what lies behind them, where one axis of three is reduced that is not the middle one.
    """
    axes = {axis % 3 for axis in op.axes or ()}
    return rank_of(op.input) == 3 and axes in ({0}, {2}) and op.outputs[0] in g.meeting


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
        result = reduce(function)(g, op)
        shape = op.input.type.shape or ()
        if loses_nan and _is_real(op.input):
            axes = g.int64(op.axes or range(len(shape)))
            end = g.number(none(op.input.type.element_type), op.input)
            # Infinities alone give the last number before them.
            other = ops.reduce_logical_or(ops.not_equal(g[op.input], end), axes, op.keepdim)
            nan = ops.reduce_logical_or(ops.is_nan(g[op.input]), axes, op.keepdim)
            result = ops.select(other, result, end)
            result = ops.select(nan, g.number(np.nan, op.input), result)
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
