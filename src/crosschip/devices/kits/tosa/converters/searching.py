"""Searches for extremes."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import NUMBERS, converts, is_real, shape_of
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.flatbuffer.schemas.tosa import DType, NanPropagationMode, Op
from crosschip.hal import Refusal, Rule
from crosschip.ops.standard.searching import ArgMax, TopK

_MAX_PAIRS = 2**24
"""The maximum number of pairs of elements that are compared to sort."""


@converts(ArgMax, types=NUMBERS)
def arg_max(g: Graph, op: ArgMax) -> Value:
    value = g[op.input]
    axis = op.axis % value.rank
    size = value.shape[axis]
    if op.select_last:
        value = g.reverse(value, axis)
    if is_real(op.input):
        shape = value.shape[:axis] + value.shape[axis + 1 :]
        mode = NanPropagationMode.PROPAGATE
        index = g.add(Op.ARGMAX, (value,), DType.INT32, shape, axis=axis, nan_mode=mode)
    else:
        shape = tuple(size if i == axis else 1 for i in range(value.rank))
        numbers = g.constant(np.arange(size, dtype=np.int32).reshape(shape), DType.INT32)
        greatest = g.equal(value, g.reduce(Op.REDUCE_MAX, value, [axis]))
        indices = g.select(greatest, numbers, g.number(size, value))
        index = g.reduce(Op.REDUCE_MIN, indices, [axis])
    if op.select_last:
        index = g.difference(g.number(size - 1, index), index)
    return index


def _few_pairs(op: TopK) -> Refusal | None:
    shape = shape_of(op.input)
    pairs = int(np.prod(shape)) * shape[op.axis]
    if pairs > _MAX_PAIRS:
        return Refusal("input", f"{pairs} pairs of elements are too many to sort", Rule.SHAPE)
    return None


@converts(TopK, types=NUMBERS, limit=_few_pairs)
def top_k(g: Graph, op: TopK) -> list[Value]:
    """Count for each element those that go before it, and select by that rank."""
    value = g[op.input]
    axis = op.axis % value.rank
    size = value.shape[axis]
    order = [*(i for i in range(value.rank) if i != axis), axis]
    moved = g.transpose(value, order)
    rows = int(np.prod(moved.shape[:-1]))
    keys = g.widen(g.reshape(moved, (rows, size)))
    one, other = g.reshape(keys, (rows, size, 1)), g.reshape(keys, (rows, 1, size))
    before = _goes_before(g, op, other, one, is_real(op.input))
    numbers = np.arange(size, dtype=np.int32)
    earlier = g.constant((numbers[None, None, :] < numbers[None, :, None]), DType.BOOL)
    after = _goes_before(g, op, one, other, is_real(op.input))
    ties = g.logical_not(g.binary(Op.LOGICAL_OR, before, after))
    first = g.binary(Op.LOGICAL_OR, before, g.binary(Op.LOGICAL_AND, ties, earlier))
    ranks = g.reduce(Op.REDUCE_SUM, g.cast(first, DType.INT32), [2])
    wanted = g.constant(np.arange(op.k, dtype=np.int32).reshape(1, 1, op.k), DType.INT32)
    chosen = g.cast(g.equal(ranks, wanted), DType.INT32)
    terms = g.product(chosen, g.constant(numbers.reshape(1, size, 1), DType.INT32))
    indices = g.reshape(g.reduce(Op.REDUCE_SUM, terms, [1]), (rows, op.k))
    values = g.gather_rows(g.reshape(moved, (rows, size, 1)), indices)
    shape = (*moved.shape[:-1], op.k)
    back = np.argsort(order).tolist()
    return [g.transpose(g.reshape(result, shape), back) for result in (values, indices)]


def _goes_before(g: Graph, op: TopK, one: Value, other: Value, real: bool) -> Value:
    """Return where an element of `one` goes before that of `other`; NaN is the greatest."""
    before = g.greater(one, other) if op.largest else g.greater(other, one)
    if not real:
        return before
    great, small = (one, other) if op.largest else (other, one)
    is_nan = g.logical_not(g.equal(great, great))
    return g.binary(Op.LOGICAL_OR, before, g.binary(Op.LOGICAL_AND, is_nan, g.equal(small, small)))
