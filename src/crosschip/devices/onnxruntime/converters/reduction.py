"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.devices.limits import some_elements
from crosschip.devices.onnxruntime.converters.table import (
    FLOAT_TYPES,
    converts,
    needs_rank,
    rank_of,
)
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS, INDICES
from crosschip.ops.standard.reduction import (
    CumSum,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
    Reduction,
)

_COMPARED = FLOAT_TYPES | INDICES | BOOLEANS | {ElementType.INT8, ElementType.UINT8}


def reduce(node: str) -> Callable[[Graph, Reduction], str]:
    """The converter to an ONNX reduction."""

    def convert(g: Graph, op: Reduction) -> str:
        axes = op.axes
        if op.input.type.shape:  # of no elements, ONNX Runtime does not find negative axes
            axes = tuple(axis % rank_of(op.input) for axis in axes)
        return g.add(node, g[op.input], g.int64(axes), keepdims=int(op.keepdim))

    return convert


def extreme(node: str) -> Callable[[Graph, Reduction], str]:
    """The converter to an ONNX reduction that may leave out a NaN."""

    def convert(g: Graph, op: Reduction) -> str:
        result = reduce(node)(g, op)
        if op.input.type.element_type not in FLOAT_TYPES:
            return result
        nans = g.cast(g.add("IsNaN", g[op.input]), np.float32)
        most = g.add("ReduceMax", nans, g.int64(op.axes), keepdims=int(op.keepdim))
        found = g.add("Greater", most, g.constant(np.array(0, np.float32)))
        return g.add("Where", found, g.scalar(np.nan, op.input), result)

    return convert


def _extreme(op: ReduceMax | ReduceMin) -> Refusal | None:
    return some_elements(op) if op.input.type.element_type in BOOLEANS else None


def _sizes_only(op: ReduceProd) -> Refusal | None:
    """Integers are multiplied as float64, which holds the products of sizes."""
    shape = op.input.type.shape
    if op.input.type.element_type is ElementType.INT64 and (shape is None or len(shape) > 1):
        return Refusal(
            "input",
            "int64 is multiplied as float64, which is for lists of sizes only",
            Rule.ELEMENT_TYPE,
        )
    return None


converts(ReduceMean, limit=some_elements)(reduce("ReduceMean"))
converts(ReduceProd, types=FLOAT_TYPES | {ElementType.INT64}, limit=_sizes_only)(
    reduce("ReduceProd")
)
converts(ReduceMax, types=_COMPARED, limit=_extreme)(extreme("ReduceMax"))
converts(ReduceMin, types=_COMPARED, limit=_extreme)(extreme("ReduceMin"))
converts(ReduceL1)(reduce("ReduceL1"))
converts(ReduceL2)(reduce("ReduceL2"))
converts(ReduceSumSquare)(reduce("ReduceSumSquare"))
converts(ReduceLogSum)(reduce("ReduceLogSum"))
converts(ReduceLogSumExp)(reduce("ReduceLogSumExp"))


def _counted(op: ReduceSum) -> Refusal | None:
    if op.input.type.element_type not in INDICES:
        return None
    return needs_rank("input", op.input) or some_elements(op)


@converts(ReduceSum, types=FLOAT_TYPES | INDICES, limit=_counted)
def reduce_sum(g: Graph, op: ReduceSum) -> str:
    # Integers are summed up as float64, and saturate; in running sums they wrap around.
    if op.input.type.element_type in FLOAT_TYPES:
        return reduce("ReduceSum")(g, op)
    total, axes = g[op.input], op.axes or tuple(range(rank_of(op.input)))
    for axis in axes:
        running = g.add("CumSum", total, g.int64([axis]))
        total = g.add("Gather", running, g.int64([-1]), axis=axis)
    return total if op.keepdim else g.add("Squeeze", total, g.int64(axes))


@converts(CumSum, types=FLOAT_TYPES | INDICES, computed=["axis"])
def cum_sum(g: Graph, op: CumSum) -> str:
    axis = op.operand("axis")
    place = g.add("Reshape", g.indices(axis), g.int64([])) if axis else g.constant(np.array(-1))
    flags = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    return g.add("CumSum", g[op.input], place, **flags)
