"""Searches: extremes, the largest elements, non-zero and unique elements, insertion points."""

from __future__ import annotations

import math

import numpy as np
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.kits.limits import has_axes
from crosschip.devices.openvino.converters.table import (
    EXACT,
    FLOAT_TYPES,
    MOVABLE,
    NUMBERS,
    check_uint32,
    converts,
    rank_of,
)
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import Operand
from crosschip.ir.types import INDICES
from crosschip.ops.standard.searching import (
    ArgExtreme,
    ArgMax,
    ArgMin,
    NonZero,
    SearchSorted,
    TopK,
    Unique,
)

_LARGEST = np.finfo(np.float32).max
_BOUND = np.float32(0.75) * _LARGEST
"""The key of infinity: above all halved finite numbers, below the key of NaN."""

_FEW = 8
"""The number of elements up to which one search each is faster than OpenVINO's stable sort."""

_LENGTH_PER_VALUE = 3
"""The elements of a sequence per value from which OpenVINO's search is faster than comparisons.

Its time grows with the square of the number of values: 0.05 ms for 100 values, 2 ms for 1000 and
200 ms for 10000, in sequences of 1000 to 1000000 elements; comparisons take 1 ns each.
"""


def _check_first(op: ArgExtreme) -> Refusal | None:
    searched = op.select_last and not _is_reduced(op.input, op.axis)
    return Refusal("select_last", "must be false") if searched else None


@converts(ArgMax, ArgMin, types=NUMBERS, limit=_check_first)
def arg_extreme(g: Graph, op: ArgExtreme) -> Value:
    greatest, axis = isinstance(op, ArgMax), op.axis % rank_of(op.input)
    key, index_type = _key(g, op.input, greatest=greatest), TYPES[op.dtype].to_string()
    if _is_reduced(op.input, axis):
        extremes = _Extremes(g, op.input, axis, greatest=greatest, last=op.select_last)
        indices = ops.convert(extremes.place(key), index_type).output(0)
    else:
        g.some(op, [axis])
        mode = "max" if greatest else "min"
        indices = ops.topk(key, g.scalar(1), axis, mode, "value", index_type, stable=True).output(1)
    return indices if op.keepdim else ops.squeeze(indices, g.int64([axis]))


def _is_reduced(operand: Operand, axis: int) -> bool:
    """Return whether extremes are found by reductions, which is faster than OpenVINO's search."""
    size = (operand.type.shape or ())[axis]
    return operand.type.element_type in FLOAT_TYPES and isinstance(size, int) and size > 0


class _Extremes:
    """Indices of the greatest or least floats along an axis of static size.

    Args:
        g: the graph that is built.
        operand: the operand searched.
        axis: the axis, 0 or more.
        greatest: search for the greatest elements, else for the least.
        last: of equal elements, return the last index, else the first.
    """

    def __init__(
        self, g: Graph, operand: Operand, axis: int, *, greatest: bool, last: bool = False
    ) -> None:
        shape = operand.type.shape or ()
        size = shape[axis]
        assert isinstance(size, int), "_is_reduced() asks for a known size"
        positions = np.arange(size, dtype=np.int32).reshape(-1, *[1] * (len(shape) - 1 - axis))
        self._positions = g.constant(positions)
        self._axis = g.int64([axis])
        self._extreme = ops.reduce_max if greatest else ops.reduce_min
        self._one = ops.reduce_max if last else ops.reduce_min
        self._nowhere = g.constant(np.array(-1 if last else size, np.int32))
        self._removed = g.constant(np.array(-np.inf if greatest else np.inf, np.float32))

    def place(self, key: Value) -> Node:
        """Return the index of the extreme of a key, in int32; the axis remains, of size 1."""
        is_extreme = ops.equal(key, self._extreme(key, self._axis, True))
        return self._one(ops.select(is_extreme, self._positions, self._nowhere), self._axis, True)

    def top_indices(self, key: Value, count: int) -> list[Node]:
        """Return the indices of the `count` most extreme elements, in order."""
        indices = [self.place(key)]
        while len(indices) < count:
            key = ops.select(ops.equal(self._positions, indices[-1]), self._removed, key)
            indices.append(self.place(key))
        return indices


def _check_count(op: TopK) -> Refusal | None:
    count = op.operand("k")
    if count is not None and count.value is not None:
        return Refusal("k", "is 0") if not op.k else None
    if op.input.type.shape and op.input.type.shape[op.axis] == 0:
        return Refusal("k", "is computed, and there is nothing to take one of", Rule.COMPUTED)
    return None


@converts(TopK, types=NUMBERS, computed=["k"], limit=_check_count)
def top_k(g: Graph, op: TopK) -> list[Output]:
    mode, axis = "max" if op.largest else "min", op.axis % rank_of(op.input)
    operand = op.operand("k")
    is_known = operand is not None and operand.value is not None
    if is_known and 0 < op.k <= _FEW and _is_reduced(op.input, axis):
        return _few(g, op, axis)
    requested, is_computed = _count(g, op, axis)
    # Quirk `top-none`.
    count = ops.maximum(requested, g.scalar(1)) if is_computed else requested
    count = ops.reshape(count, g.int64([]), False)
    index_type = TYPES[op.return_indices_dtype]
    key = _key(g, op.input, greatest=True)
    result = ops.topk(key, count, axis, mode, "value", index_type.to_string(), stable=True)
    values, indices = result.outputs()
    if is_computed:
        start, step, along = g.int64([0]), g.int64([1]), g.int64([axis])
        values, indices = (
            ops.slice(each, start, requested, step, along).output(0) for each in (values, indices)
        )
    if op.input.type.element_type in FLOAT_TYPES:
        values = ops.gather_elements(g[op.input], indices, axis).output(0)
    return [values, indices]


def _few(g: Graph, op: TopK, axis: int) -> list[Output]:
    """Search for a few elements one after the other."""
    key = _key(g, op.input, greatest=True)
    extremes = _Extremes(g, op.input, axis, greatest=op.largest)
    indices = ops.concat(extremes.top_indices(key, op.k), axis)
    outputs = ops.convert(indices, TYPES[op.return_indices_dtype].to_string())
    return [ops.gather_elements(g[op.input], outputs, axis).output(0), outputs.output(0)]


def _count(g: Graph, op: TopK, axis: int) -> tuple[Node, bool]:
    """Return the requested number of elements as a list of one, and whether it is computed.

    Runs with an invalid count are refused: after one, OpenVINO fails in later runs, too.

    """
    operand, size = op.operand("k"), (op.input.type.shape or ())[axis]
    is_computed = operand is not None and operand.value is None
    count = g.indices(operand)
    if isinstance(size, int) and not is_computed:
        return count, is_computed
    inside = ops.maximum(ops.minimum(count, g.size(op.input, axis)), g.scalar(0))
    g.require(op, "k: is negative, or more than there are", ops.equal(count, inside))
    return inside, is_computed


def _key(g: Graph, operand: Operand, *, greatest: bool) -> Value:
    """Return a finite key in the order of the operand, NaN being the greatest or the least.

    NaN becomes the largest finite number, and infinity a smaller one. All numbers are halved to
    make space for these; only the smallest subnormal numbers lose a bit. The key is finite.
    """
    if operand.type.element_type not in FLOAT_TYPES:
        return g[operand]
    value = ops.convert(g[operand], "f32")
    halves = ops.multiply(value, g.constant(np.array(0.5, np.float32)))
    bounded = ops.clamp(halves, -float(_BOUND), float(_BOUND))
    end = g.constant(np.array(_LARGEST if greatest else -_LARGEST, np.float32))
    return ops.select(ops.is_nan(value), end, bounded)


@converts(NonZero, types=MOVABLE, limit=has_axes)
def non_zero(g: Graph, op: NonZero) -> Node:
    return ops.non_zero(g[op.input], "i64")


def _check_unique(op: Unique) -> Refusal | None:
    shape = op.input.type.static_shape
    if shape is None or 0 in shape:
        return Refusal("input", "its sizes must be known, and not 0", Rule.SHAPE)
    if op.axis is not None and len(shape) > 1:
        return Refusal("axis", "OpenVINO does not remove all duplicates", Rule.SHAPE)
    value = op.input.value
    if value is not None and np.isnan(value.astype(np.float64)).any():
        return Refusal("input", "has a NaN")
    return check_uint32(op)


# Quirk `large-integers-among-unique`.
@converts(Unique, types=FLOAT_TYPES | INDICES, limit=_check_unique, bits=EXACT)
def unique(g: Graph, op: Unique) -> list[Output]:
    axis = None if op.axis is None else g.scalar(op.axis)
    outputs: list[Output] = ops.unique(g[op.input], axis, op.sorted, "i64", "i64").outputs()
    return outputs


def _check_sequences(op: SearchSorted) -> Refusal | None:
    sequence, values = op.sorted_sequence.type.static_shape or (), op.values.type.static_shape
    if 0 in sequence or not sequence:
        return Refusal("sorted_sequence", "its sizes must be known, and not 0", Rule.SHAPE)
    if values is None or math.prod(values) * _LENGTH_PER_VALUE > sequence[-1]:
        return Refusal("values", "for so many, comparing with all elements is faster", Rule.SHAPE)
    if len(sequence) > 1 and sequence[:-1] != values[:-1]:
        return Refusal("values", "must have as many rows as there are sequences", Rule.SHAPE)
    return None


# Quirk `places-in-empty-sequence`.
@converts(SearchSorted, types=NUMBERS, output_types=INDICES, limit=_check_sequences)
def search_sorted(g: Graph, op: SearchSorted) -> Node:
    indices = ops.search_sorted(g[op.sorted_sequence], g[op.values], op.right)
    return ops.convert(indices, TYPES[op.dtype].to_string())
