"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.devices.kits.limits import some_elements
from crosschip.devices.kits.onnx.converters.table import (
    FLOAT_TYPES,
    converts,
    needs_rank,
    rank_of,
    refused_unless,
)
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.devices.kits.onnx.lowering.reduction import FACTORS, is_product_of_few
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import BOOLEANS, INDICES
from crosschip.ops.standard import reduction

_COMPARED = FLOAT_TYPES | INDICES | BOOLEANS | {ElementType.INT8, ElementType.UINT8}


def reduce(node: str) -> Callable[[Graph, reduction.Reduction], str]:
    """Return the converter to an ONNX reduction."""

    def convert(g: Graph, op: reduction.Reduction) -> str:
        axes = op.axes
        if op.input.type.shape:  # quirk axes-of-nothing
            axes = tuple(axis % rank_of(op.input) for axis in axes)
        return g.add(node, g[op.input], g.int64(axes), keepdims=int(op.keepdim))

    return convert


def _reduce_prod_limit(op: reduction.ReduceProd) -> Refusal | None:
    """Refuse large products: ONNX Runtime computes in float64, enough for sizes only."""
    shape, element_type = op.input.type.shape, op.input.type.element_type
    if element_type not in INDICES or is_product_of_few(op):
        return None
    if element_type is ElementType.INT32 or shape is None or len(shape) > 1:
        detail = f"more than {FACTORS} of {element_type} are multiplied as float64"
        return Refusal("input", detail, Rule.ELEMENT_TYPE)
    return None


converts(reduction.ReduceProd, types=FLOAT_TYPES | INDICES, limit=_reduce_prod_limit)(
    reduce("ReduceProd")
)
converts(reduction.ReduceMean, limit=some_elements)(reduce("ReduceMean"))
converts(reduction.ReduceMax, types=_COMPARED)(reduce("ReduceMax"))
converts(reduction.ReduceMin, types=_COMPARED)(reduce("ReduceMin"))
converts(reduction.ReduceL1)(reduce("ReduceL1"))
converts(reduction.ReduceL2)(reduce("ReduceL2"))
converts(reduction.ReduceSumSquare)(reduce("ReduceSumSquare"))
converts(reduction.ReduceLogSum)(reduce("ReduceLogSum"))
converts(reduction.ReduceLogSumExp)(reduce("ReduceLogSumExp"))


def _reduce_sum_limit(op: reduction.ReduceSum) -> Refusal | None:
    if op.input.type.element_type not in INDICES:
        return None
    return needs_rank("input", op.input) or some_elements(op)


converts(reduction.ReduceSum, types=FLOAT_TYPES | INDICES, limit=_reduce_sum_limit)(
    reduce("ReduceSum")
)


def _axis(g: Graph, input: Operand, axis: Operand) -> str:
    """Return an axis, checked: ONNX Runtime does not check it on empty inputs."""
    index = g.indices(axis)
    if axis.value is None:  # quirk axis-beyond-nothing
        rank = g.add("Shape", g.add("Shape", g[input]))
        beyond = g.add("GreaterOrEqual", index, rank)
        beyond = g.add("Or", beyond, g.add("Less", index, g.add("Neg", rank)))
        index = refused_unless(g, g.add("Not", beyond), index, g.int64([1]))
    return g.add("Squeeze", index)


@converts(reduction.CumSum, types=FLOAT_TYPES | INDICES, computed=["axis"])
def cum_sum(g: Graph, op: reduction.CumSum) -> str:
    axis = op.operand("axis")
    axis_name = _axis(g, op.input, axis) if axis else g.constant(np.array(-1))
    flags = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    return g.add("CumSum", g[op.input], axis_name, **flags)
