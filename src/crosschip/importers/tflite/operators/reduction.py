"""Reductions along axes, and running sums."""

from __future__ import annotations

from crosschip.flatbuffer.schemas.tflite.options import CumsumOptions, ReducerOptions
from crosschip.importers.facts import rank_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops import Operator
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard.reduction import (
    CumSum,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)
from crosschip.ops.standard.searching import ArgMax, ArgMin

_REDUCTIONS: dict[str, type[Operator]] = {
    "MEAN": ReduceMean,
    "REDUCE_ALL": ReduceAll,
    "REDUCE_ANY": ReduceAny,
    "REDUCE_MAX": ReduceMax,
    "REDUCE_MIN": ReduceMin,
    "REDUCE_PROD": ReduceProd,
    "SUM": ReduceSum,
}


@imports(*_REDUCTIONS)
def reduce(node: Node) -> Operand:
    rank = rank_of(node[0])
    axes = {normalize_axis(int(axis), rank) for axis in node.value(1, "the list of axes").ravel()}
    if not axes:
        return node[0]
    keepdim = bool(node.options(ReducerOptions).keep_dims)
    return node.add(_REDUCTIONS[node.type], node[0], axes=tuple(sorted(axes)), keepdim=keepdim)


@imports("ARG_MAX", "ARG_MIN")
def arg_extremum(node: Node) -> Operand:
    operator = ArgMax if node.type == "ARG_MAX" else ArgMin
    axis = int(node.value(1, "the axis").item())
    return node.add(operator, node[0], axis, keepdim=False, dtype=node.output().element_type)


@imports("CUMSUM")
def cumsum(node: Node) -> Operand:
    options = node.options(CumsumOptions)
    return node.add(
        CumSum,
        node[0],
        axis=int(node.value(1, "the axis").item()),
        exclusive=bool(options.exclusive),
        reverse=bool(options.reverse),
    )
