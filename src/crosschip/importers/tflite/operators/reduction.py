"""Reductions along axes, and running sums."""

from __future__ import annotations

import math

import numpy as np

from crosschip.flatbuffer.schemas.tflite.options import CumsumOptions, ReducerOptions
from crosschip.importers.facts import rank_of, size_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, Operand
from crosschip.ops import Operator
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard.arithmetic import Div
from crosschip.ops.standard.conversion import Cast
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

_OF_BOOLEANS: dict[str, type[Operator]] = {"REDUCE_PROD": ReduceAll, "SUM": ReduceAny}
"""The reductions of booleans that are those of numbers in the schema."""


@imports(*_REDUCTIONS)
def reduce(node: Node) -> Operand:
    rank = rank_of(node[0])
    axes = {normalize_axis(int(axis), rank) for axis in node.value(1, "the list of axes").ravel()}
    if not axes:
        return node[0]
    keepdim, operator = bool(node.options(ReducerOptions).keep_dims), _REDUCTIONS[node.type]
    kind, all_axes = node[0].type.element_type, tuple(sorted(axes))
    if kind is ElementType.BOOL:
        operator = _OF_BOOLEANS.get(node.type, operator)
    if operator is ReduceMean and kind in (ElementType.INT32, ElementType.INT64):
        count = math.prod(size_of(node[0], axis) for axis in all_axes)
        wide = node.add(Cast, node.integers(node[0]), ElementType.INT64)
        total = node.add(ReduceSum, wide, axes=all_axes, keepdim=keepdim)
        return node.add(Cast, node.add(Div, total, np.array(count, np.int64)), kind)
    return node.add(operator, node[0], axes=all_axes, keepdim=keepdim)


@imports("ARG_MAX", "ARG_MIN")
def arg_extremum(node: Node) -> Operand:
    operator = ArgMax if node.type == "ARG_MAX" else ArgMin
    axis, values = int(node.value(1, "the axis").item()), node[0]
    if values.type.element_type is ElementType.BOOL:
        values = node.add(Cast, values, ElementType.UINT8)
    return node.add(operator, values, axis, keepdim=False, dtype=node.output().element_type)


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
