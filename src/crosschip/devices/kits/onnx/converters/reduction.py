"""Reductions."""

from __future__ import annotations

import functools
import math
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
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
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
        return _reduced(g, op, node, g[op.input])

    return convert


def _reduced(g: Graph, op: Reduction, node: str, value: str) -> str:
    """A value reduced along the axes of an operation."""
    axes = op.axes
    if op.input.type.shape:  # of no elements, ONNX Runtime does not find negative axes
        axes = tuple(axis % rank_of(op.input) for axis in axes)
    return g.add(node, value, g.int64(axes), keepdims=int(op.keepdim))


def extreme(node: str) -> Callable[[Graph, Reduction], str]:
    """The converter to an ONNX reduction to an extreme, which may leave out a NaN."""
    keeping_nan = _keeping_nan(node)

    def convert(g: Graph, op: Reduction) -> str:
        if op.input.type.element_type in BOOLEANS:
            # Of no booleans, ONNX Runtime finds no extreme.
            return g.cast(_reduced(g, op, node, g.cast(g[op.input], np.uint8)), np.bool_)
        return keeping_nan(g, op)

    return convert


def _keeping_nan(node: str) -> Callable[[Graph, Reduction], str]:
    """The converter to an ONNX reduction, with NaN where there is one among what is reduced.

    The sum of absolute values is NaN there and nowhere else.
    """

    def convert(g: Graph, op: Reduction) -> str:
        result = reduce(node)(g, op)
        element_type = op.input.type.element_type
        if element_type not in FLOAT_TYPES:
            return result
        narrow = element_type is ElementType.FLOAT16
        value = g.cast(g[op.input], np.float32) if narrow else g[op.input]
        sums = _reduced(g, op, "ReduceSum", g.add("Abs", value))
        return g.add("Where", g.add("IsNaN", sums), g.scalar(np.nan, op.input), result)

    return convert


_FACTORS = 32
"""Up to so many integers are multiplied one by one, which wraps around as it should."""


def _axes(op: Reduction) -> tuple[int, ...]:
    """The axes that are reduced, from the front."""
    rank = rank_of(op.input)
    return tuple(axis % rank for axis in op.axes) if op.axes else tuple(range(rank))


def _is_few(op: ReduceProd) -> bool:
    """Tell whether the integers that make a product are known to be few, but some."""
    shape = op.input.type.shape
    sizes = [shape[axis] for axis in _axes(op)] if shape is not None else []
    known = [size for size in sizes if isinstance(size, int)]
    return 0 < len(known) == len(sizes) and 0 < math.prod(known) <= _FACTORS


def _sizes_only(op: ReduceProd) -> Refusal | None:
    """ONNX Runtime multiplies integers as float64, which holds the products of sizes."""
    shape, element_type = op.input.type.shape, op.input.type.element_type
    if element_type not in INDICES or _is_few(op):
        return None
    if element_type is ElementType.INT32 or shape is None or len(shape) > 1:
        detail = f"more than {_FACTORS} of {element_type} are multiplied as float64"
        return Refusal("input", detail, Rule.ELEMENT_TYPE)
    return None


@converts(ReduceProd, types=FLOAT_TYPES | INDICES, limit=_sizes_only)
def reduce_prod(g: Graph, op: ReduceProd) -> str:
    if op.input.type.element_type in FLOAT_TYPES or not _is_few(op):
        return reduce("ReduceProd")(g, op)
    value, axes = g[op.input], _axes(op)
    for axis in axes:
        size = (op.input.type.shape or ())[axis]
        assert isinstance(size, int), "it is known to be small"
        factors = [g.add("Gather", value, g.int64([i]), axis=axis) for i in range(size)]
        value = functools.reduce(lambda one, other: g.add("Mul", one, other), factors)
    return value if op.keepdim else g.add("Squeeze", value, g.int64(axes))


@converts(ReduceMean, limit=some_elements)
def reduce_mean(g: Graph, op: ReduceMean) -> str:
    mean, shape = reduce("ReduceMean")(g, op), op.input.type.shape
    if shape is not None and all(isinstance(shape[a], int) for a in op.axes or range(len(shape))):
        return mean
    # Of no elements, ONNX Runtime makes 0.
    sizes = g.add("Shape", g[op.input])
    if op.axes:
        sizes = g.add("Gather", sizes, g.int64(op.axes))
    is_empty = g.add("Equal", g.add("ReduceProd", sizes, keepdims=0), g.constant(np.array(0)))
    return g.add("Where", is_empty, g.scalar(np.nan, op.input), mean)


converts(ReduceMax, types=_COMPARED)(extreme("ReduceMax"))


converts(ReduceMin, types=_COMPARED)(extreme("ReduceMin"))


converts(ReduceL1)(reduce("ReduceL1"))
converts(ReduceL2)(reduce("ReduceL2"))
converts(ReduceSumSquare)(reduce("ReduceSumSquare"))
converts(ReduceLogSum)(reduce("ReduceLogSum"))
converts(ReduceLogSumExp)(_keeping_nan("ReduceLogSumExp"))


def _counted(op: ReduceSum) -> Refusal | None:
    if op.input.type.element_type not in INDICES:
        return None
    return needs_rank("input", op.input) or some_elements(op)


@converts(ReduceSum, types=FLOAT_TYPES | INDICES, limit=_counted)
def reduce_sum(g: Graph, op: ReduceSum) -> str:
    # Integers are summed up as float64, and saturate; in running sums they wrap around, which begin
    # with a 0 where there may be none.
    if op.input.type.element_type in FLOAT_TYPES:
        return reduce("ReduceSum")(g, op)
    total, axes = g[op.input], _axes(op)
    last = g.constant(np.array([-1] if op.keepdim else -1, np.int64))
    for axis in sorted(axes, reverse=True):
        if not isinstance((op.input.type.shape or ())[axis], int):
            total = g.add("Pad", total, g.int64([1, 0]), "", g.int64([axis]))
        running = g.add("CumSum", total, g.int64([axis]))
        total = g.add("Gather", running, last, axis=axis)
    return total


def _axis(g: Graph, input: Operand, axis: Operand) -> str:
    """One axis; where there are no elements, ONNX Runtime does not look whether there is such."""
    given = g.indices(axis)
    if axis.value is None:
        rank = g.add("Shape", g.add("Shape", g[input]))
        beyond = g.add("GreaterOrEqual", given, rank)
        beyond = g.add("Or", beyond, g.add("Less", given, g.add("Neg", rank)))
        given = refused_unless(g, g.add("Not", beyond), given, g.int64([1]))
    return g.add("Squeeze", given)


@converts(CumSum, types=FLOAT_TYPES | INDICES, computed=["axis"])
def cum_sum(g: Graph, op: CumSum) -> str:
    axis = op.operand("axis")
    place = _axis(g, op.input, axis) if axis else g.constant(np.array(-1))
    flags = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    return g.add("CumSum", g[op.input], place, **flags)
