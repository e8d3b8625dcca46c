"""Reductions, and cumulative sums."""

from __future__ import annotations

from functools import partial, reduce

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import NUMBERS, Convert, converts, is_real
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.ops.standard import reduction


def _axes(op: reduction.Reduction, rank: int) -> list[int]:
    return sorted(axis % rank for axis in op.axes) or list(range(rank))


def _reduction(op: Op, booleans: Op | None = None) -> Convert:
    """Return a converter to a reduction; booleans have another operator."""

    def convert(g: Graph, operation: reduction.Reduction) -> Value:
        value = g[operation.input]
        chosen = booleans if value.dtype is DType.BOOL and booleans is not None else op
        return g.reduce(chosen, value, _axes(operation, value.rank))

    return convert


converts(reduction.ReduceSum, types=NUMBERS)(_reduction(Op.REDUCE_SUM))
converts(reduction.ReduceMax)(_reduction(Op.REDUCE_MAX, Op.REDUCE_ANY))
converts(reduction.ReduceMin)(_reduction(Op.REDUCE_MIN, Op.REDUCE_ALL))
converts(reduction.ReduceAll)(_reduction(Op.REDUCE_ALL))
converts(reduction.ReduceAny)(_reduction(Op.REDUCE_ANY))


@converts(reduction.ReduceProd, types=NUMBERS)
def reduce_prod(g: Graph, op: reduction.ReduceProd) -> Value:
    value = g[op.input]
    axes = _axes(op, value.rank)
    if is_real(op.input):
        return g.reduce(Op.REDUCE_PRODUCT, value, axes)
    return reduce(partial(_multiply, g), axes, value)


def _multiply(g: Graph, value: Value, axis: int) -> Value:
    """Return products of integers along an axis, halving it until one entry is left."""
    while (size := value.shape[axis]) > 1:
        half = size // 2
        product = g.product(g.part(value, axis, 0, half), g.part(value, axis, half, 2 * half))
        rest = [g.part(value, axis, 2 * half, size)] if size % 2 else []
        value = g.concat([product, *rest], axis)
    return value


@converts(reduction.CumSum, types=NUMBERS)
def cum_sum(g: Graph, op: reduction.CumSum) -> Value:
    value = g[op.input]
    axis = op.axis % value.rank
    size = value.shape[axis]
    if op.reverse:
        value = g.reverse(value, axis)
    if op.exclusive:
        value = _shift(g, value, axis, 1)
    length = 1
    while length < size:
        value = g.sum(value, _shift(g, value, axis, length))
        length *= 2
    return g.reverse(value, axis) if op.reverse else value


def _shift(g: Graph, value: Value, axis: int, count: int) -> Value:
    """Return a value shifted along an axis, with zeros in the first entries."""
    size = value.shape[axis]
    pads = [(count if i == axis else 0, 0) for i in range(value.rank)]
    padded = g.pad(value, pads, g.zero(value.dtype))
    return g.part(padded, axis, 0, size)
