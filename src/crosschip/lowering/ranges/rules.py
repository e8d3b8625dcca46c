"""Range rules: a function per operator that maps input ranges to output ranges.

Outputs of operators without a rule have the range of their type. Rules need not handle integers
that wrap around: a range beyond the type is replaced by that of the type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from crosschip.ir import Dim, Operand
from crosschip.ir.dimension import product
from crosschip.ir.types import FLOATS
from crosschip.lowering.ranges.interval import TRUTH, Interval, of_type
from crosschip.ops import Operator
from crosschip.ops.standard import (
    adaptive_pooling,
    arithmetic,
    blocks,
    comparison,
    conversion,
    creation,
    indexing,
    joining,
    layout,
    logical,
    padding,
    pooling,
    rearranging,
    reduction,
    searching,
    slicing,
    suppression,
    unary,
)
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.matrix import MatMul

Range = Interval | None
"""The range of an operand's values; `None` if it is not known."""


class KnownRanges(Protocol):
    """The ranges that rules read."""

    def of(self, operand: Operand) -> Range:
        """Return the range of an operand."""

    def size(self, size: Dim) -> Interval:
        """Return the range of a dimension."""


Rule = Callable[[Any, KnownRanges], Range | Sequence[Range]]
RULES: dict[type, Rule] = {}
"""The rules by operator; they return one range for all outputs, or one per output."""


def range_of(*operators: type[Operator]) -> Callable[[Rule], Rule]:
    """Decorator: register a function as the range rule of operators."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(operators, rule))
        return rule

    return register


def _hull(ranges: KnownRanges, *operands: Operand | None) -> Range:
    """Return the smallest range that contains the elements of several operands."""
    operand_ranges = [ranges.of(operand) for operand in operands if operand is not None]
    known_ranges = [each for each in operand_ranges if each is not None]
    is_known = known_ranges and len(known_ranges) == len(operand_ranges)
    return Interval.hull_of(known_ranges) if is_known else None


@range_of(
    *(layout.Reshape, layout.Transpose, layout.Squeeze, layout.Unsqueeze, layout.Flatten),
    *(layout.Expand, rearranging.Tile, rearranging.Roll, rearranging.ReverseSequence),
    *(slicing.Slice, slicing.StridedSlice, slicing.Crop),
    *(blocks.ChannelShuffle, blocks.DepthToSpace, blocks.SpaceToDepth, blocks.BatchToSpaceND),
    *(joining.Split, joining.Unstack, conversion.Assign),
    *(indexing.Gather, indexing.GatherND, indexing.GatherElements),
    *(reduction.ReduceMax, reduction.ReduceMin),
)
def _elements(op: Any, ranges: KnownRanges) -> Range:
    range_ = ranges.of(op.input)
    if range_ is None or not isinstance(op, reduction.Reduction):
        return range_
    # The extreme of no elements is an end of the type.
    shape = op.input.type.shape
    axes = op.axes or range(len(shape or ()))
    is_nonempty = shape is not None and all(ranges.size(shape[axis]).low > 0 for axis in axes)
    type_range = of_type(op.input.type.element_type)
    return range_ if is_nonempty else type_range


@range_of(joining.Concat, joining.Stack)
def _concat(op: joining.Concat | joining.Stack, ranges: KnownRanges) -> Range:
    return _hull(ranges, *op.parts)


@range_of(joining.Meshgrid)
def _meshgrid(op: joining.Meshgrid, ranges: KnownRanges) -> Sequence[Range]:
    return [ranges.of(part) for part in op.parts]


@range_of(logical.Where)
def _where(op: logical.Where, ranges: KnownRanges) -> Range:
    return _hull(ranges, op.input0, op.input1)


@range_of(padding.Pad)
def _pad(op: padding.Pad, ranges: KnownRanges) -> Range:
    range_ = _hull(ranges, op.input, op.value)
    return range_ if range_ is None or op.value is not None else range_.hull(Interval(0, 0))


@range_of(indexing.ScatterElements, indexing.ScatterND)
def _scatter(op: indexing.ScatterElements | indexing.ScatterND, ranges: KnownRanges) -> Range:
    overwrites = op.reduction in (indexing.Scatter.NONE, indexing.Scatter.MAX, indexing.Scatter.MIN)
    return _hull(ranges, op.input, op.updates) if overwrites else None


@range_of(
    *(comparison.Equal, comparison.NotEqual, comparison.Less, comparison.LessEqual),
    *(comparison.Greater, comparison.GreaterEqual),
    *(logical.Not, logical.And, logical.Or, logical.Xor),
    *(reduction.ReduceAll, reduction.ReduceAny, unary.IsNaN, unary.IsInf),
)
def _boolean(op: Operator, ranges: KnownRanges) -> Range:
    return TRUTH


@range_of(conversion.Cast)
def _cast(op: conversion.Cast, ranges: KnownRanges) -> Range:
    source_type, range_ = op.input.type.element_type, ranges.of(op.input)
    if op.dtype in FLOATS:
        return None if range_ is None else range_.rounded
    if range_ is None or source_type not in FLOATS:
        return range_
    # Casts of infinities and NaN to integers are undefined.
    return range_.to_integers


# Creation


@range_of(creation.ShapeOf)
def _shape(op: creation.ShapeOf, ranges: KnownRanges) -> Range:
    sizes = op.input.type.shape
    if not sizes:
        return Interval(0, 0) if sizes == () else None
    return Interval.hull_of(map(ranges.size, sizes))


@range_of(creation.Range)
def _range(op: creation.Range, ranges: KnownRanges) -> Range:
    return _hull(ranges, op.start, op.end) if op.start.type.element_type not in FLOATS else None


@range_of(creation.Fill, creation.FillLike)
def _fill(op: creation.Fill | creation.FillLike, ranges: KnownRanges) -> Range:
    return ranges.of(op.value)


@range_of(creation.OneHot)
def _one_hot(op: creation.OneHot, ranges: KnownRanges) -> Range:
    return _hull(ranges, op.on_value, op.off_value)


# Searching


def _indices(ranges: KnownRanges, sizes: Sequence[Dim] | None) -> Range:
    """Return the range of indices on axes of these sizes."""
    if sizes is None:
        return None
    most = max((ranges.size(size).high for size in sizes), default=1)
    return Interval(0, max(0, most - 1))


@range_of(searching.ArgMax, searching.ArgMin)
def _arg_extreme(op: searching.ArgMax | searching.ArgMin, ranges: KnownRanges) -> Range:
    shape = op.input.type.shape
    return None if shape is None else _indices(ranges, [shape[op.axis]])


@range_of(searching.TopK)
def _top_k(op: searching.TopK, ranges: KnownRanges) -> Sequence[Range]:
    shape = op.input.type.shape
    indices = None if shape is None else _indices(ranges, [shape[op.axis]])
    return [ranges.of(op.input), indices]


@range_of(searching.NonZero)
def _non_zero(op: searching.NonZero, ranges: KnownRanges) -> Range:
    return _indices(ranges, op.input.type.shape)


@range_of(searching.Unique)
def _unique(op: searching.Unique, ranges: KnownRanges) -> Sequence[Range]:
    shape = op.input.type.shape
    if shape is None:
        return [ranges.of(op.input), None, None, None]
    count = _count(ranges, shape if op.axis is None else [shape[op.axis]])
    index = Interval(0, max(0, count.high - 1))
    return [ranges.of(op.input), index, index, count]


@range_of(searching.SearchSorted)
def _search_sorted(op: searching.SearchSorted, ranges: KnownRanges) -> Range:
    shape = op.sorted_sequence.type.shape
    return None if shape is None else _count(ranges, shape[-1:])


@range_of(
    pooling.MaxPool1D,
    pooling.MaxPool2D,
    pooling.MaxPool3D,
    adaptive_pooling.AdaptiveMaxPool1D,
    adaptive_pooling.AdaptiveMaxPool2D,
    adaptive_pooling.AdaptiveMaxPool3D,
)
def _max_pool(
    op: pooling.MaxPool | adaptive_pooling.AdaptiveMaxPool, ranges: KnownRanges
) -> Sequence[Range]:
    shape = op.input.type.shape
    indices = None if shape is None else _indices(ranges, [product(shape[2:])])
    return [None, None if indices is None else indices.hull(Interval(-1, 0))][: len(op.outputs)]


@range_of(suppression.NonMaxSuppressionIndices)
def _non_max_suppression(op: suppression.NonMaxSuppressionIndices, ranges: KnownRanges) -> Range:
    return _indices(ranges, op.scores.type.shape)


# Reductions


def _count(ranges: KnownRanges, sizes: Sequence[Dim]) -> Interval:
    """Return the range of the number of elements on some axes, including 0."""
    return ranges.size(product(tuple(sizes))).hull(Interval(0, 0))


def _axes(op: reduction.Reduction) -> Sequence[Dim] | None:
    shape = op.input.type.shape
    return None if shape is None else [shape[axis] for axis in op.axes or range(len(shape))]


@range_of(reduction.ReduceSum, reduction.ReduceL1)
def _reduce_sum(op: reduction.Reduction, ranges: KnownRanges) -> Range:
    range_, sizes = ranges.of(op.input), _axes(op)
    if range_ is None or sizes is None:
        return None
    each = range_.magnitude if isinstance(op, reduction.ReduceL1) else range_
    return each * _count(ranges, sizes)


@range_of(reduction.ReduceProd)
def _reduce_prod(op: reduction.ReduceProd, ranges: KnownRanges) -> Range:
    range_, sizes = ranges.of(op.input), _axes(op)
    if range_ is None or sizes is None:
        return None
    magnitude, count = max(1, range_.magnitude.high), _count(ranges, sizes).high
    if count > _MAX_FACTORS and magnitude > 1:
        return None
    magnitude = magnitude ** min(count, _MAX_FACTORS)
    return Interval(0 if range_.low >= 0 else -magnitude, magnitude)


_MAX_FACTORS = 64
"""The number of factors greater than 1 that certainly overflow an integer."""


@range_of(reduction.ReduceMean)
def _reduce_mean(op: reduction.ReduceMean, ranges: KnownRanges) -> Range:
    range_ = ranges.of(op.input)
    if range_ is None or op.input.type.element_type not in FLOATS:
        return None
    mean = range_.rounded
    return Interval(mean.low, mean.high, True)


@range_of(reduction.CumSum)
def _cum_sum(op: reduction.CumSum, ranges: KnownRanges) -> Range:
    range_, shape = ranges.of(op.input), op.input.type.shape
    if range_ is None or shape is None:
        return None
    return range_ * _count(ranges, [shape[op.axis]])


@range_of(MatMul)
def _mat_mul(op: MatMul, ranges: KnownRanges) -> Range:
    x, y, shape = ranges.of(op.x), ranges.of(op.y), op.x.type.shape
    if x is None or y is None or not shape:
        return None
    depth = shape[-2] if op.transpose_x and len(shape) > 1 else shape[-1]
    return x * y * _count(ranges, [depth])


@range_of(arithmetic.Sum)
def _sum(op: arithmetic.Sum, ranges: KnownRanges) -> Range:
    total: Range = Interval(0, 0)
    for term in op.terms:
        range_ = ranges.of(term)
        total = None if range_ is None or total is None else total + range_
    return total


# Arithmetic


def _binary(combine: Callable[[Interval, Interval], Range]) -> Callable[[Any, KnownRanges], Range]:
    """Return the rule of an operator on two tensors, given the rule for two ranges."""

    def rule(op: Any, ranges: KnownRanges) -> Range:
        first, second = ranges.of(op.input0), ranges.of(op.input1)
        return None if first is None or second is None else combine(first, second)

    return rule


range_of(arithmetic.Add)(_binary(lambda a, b: a + b))
range_of(arithmetic.Sub)(_binary(lambda a, b: a - b))
range_of(arithmetic.Mul)(_binary(lambda a, b: a * b))
range_of(arithmetic.SquaredDifference)(_binary(lambda a, b: _squares(a - b)))


def _extreme(choose: Callable[..., float], first: Interval, second: Interval) -> Interval:
    low, high = choose(first.low, second.low), choose(first.high, second.high)
    chosen = Interval(low, high, first.special or second.special)
    # If one operand may be infinite or NaN, the result may be the other one.
    return chosen.hull(first, second) if chosen.special else chosen


range_of(arithmetic.Max)(_binary(partial(_extreme, max)))
range_of(arithmetic.Min)(_binary(partial(_extreme, min)))


@range_of(arithmetic.Div, arithmetic.FloorDiv)
def _div(op: arithmetic.Div | arithmetic.FloorDiv, ranges: KnownRanges) -> Range:
    first, second = ranges.of(op.input0), ranges.of(op.input1)
    if first is None or second is None:
        return None
    if op.input0.type.element_type in FLOATS:
        return first / second if isinstance(op, arithmetic.Div) else None
    # DIV rounds towards 0, FLOOR_DIV down; division by 0 gives 0.
    magnitude = first.magnitude.high
    low = 0 if first.low >= 0 and second.low >= 0 else -magnitude
    high = 0 if first.high <= 0 <= second.low else magnitude
    rounds_down = isinstance(op, arithmetic.FloorDiv) and low < 0
    nearest = max(1, second.magnitude.low)
    return Interval(-(-low // nearest) - rounds_down, high // nearest)


@range_of(arithmetic.Mod)
def _mod(op: arithmetic.Mod, ranges: KnownRanges) -> Range:
    first, second = ranges.of(op.input0), ranges.of(op.input1)
    if first is None or second is None or op.input0.type.element_type in FLOATS:
        return None
    most = max(0, second.magnitude.high - 1)
    least_source = first if op.fmod else second
    low = 0 if least_source.low >= 0 else -most
    high = 0 if least_source.high <= 0 else most
    return Interval(low, high)


@range_of(arithmetic.Pow)
def _pow(op: arithmetic.Pow, ranges: KnownRanges) -> Range:
    base, exponent = ranges.of(op.input0), ranges.of(op.input1)
    if base is None or exponent is None or op.input0.type.element_type in FLOATS:
        return None
    if exponent.high > _MAX_FACTORS:
        return None
    magnitude = max(1, base.magnitude.high) ** max(0, exponent.high)
    return Interval(0 if base.low >= 0 else -magnitude, magnitude)


@range_of(arithmetic.Clip)
def _clip(op: arithmetic.Clip, ranges: KnownRanges) -> Range:
    range_, bounds = ranges.of(op.input), (op.min, op.max)
    type_ = of_type(op.input.type.element_type)
    if type_ is not None:
        if range_ is None:
            return None
        low, high = (
            min(max(type_.low, math.trunc(b) if math.isfinite(b) else b), type_.high)
            for b in bounds
        )
        return range_.within(low, high)
    if range_ is not None and not range_.special:
        return range_.rounded.within(*bounds)
    if not all(map(math.isfinite, bounds)):
        return None
    return Interval(min(bounds), max(bounds), special=True)


def _unary(of: Callable[[Interval], Range]) -> Callable[[Any, KnownRanges], Range]:
    """Return the rule of an operator on one tensor, given the rule for its range."""

    def rule(op: Any, ranges: KnownRanges) -> Range:
        range_ = ranges.of(op.input)
        return None if range_ is None else of(range_)

    return rule


def _squares(range_: Interval) -> Interval:
    return range_.magnitude * range_.magnitude


def _round(range_: Interval) -> Interval:
    integers = range_.rounded.to_integers
    return Interval(float(integers.low), float(integers.high), range_.special)


def _sqrt(range_: Interval) -> Interval:
    special = range_.special or range_.low < 0
    low, high = (math.sqrt(max(0, end)) for end in (range_.low, range_.high))
    return Interval(low, high, special).rounded


_LEAST_LOGARITHM = -104.0
"""Less than the logarithm of any positive float32."""


def _log(range_: Interval) -> Interval:
    low = math.log(range_.low) if range_.low > 0 else _LEAST_LOGARITHM
    high = math.log(range_.high) if range_.high > 0 else _LEAST_LOGARITHM
    special = range_.special or range_.low <= 0
    return Interval(low - _LOG_ERROR, high + _LOG_ERROR, special).rounded


_LOG_ERROR = 1e-3
"""The absolute error of engines' logarithms."""

range_of(Relu)(_unary(lambda range_: range_.within(0, math.inf)))
range_of(rearranging.Trilu)(_unary(lambda range_: range_.hull(Interval(0, 0))))
range_of(unary.Abs)(_unary(lambda range_: range_.magnitude))
range_of(unary.Neg)(_unary(lambda range_: -range_))
range_of(unary.Square)(_unary(_squares))
range_of(unary.Sqrt)(_unary(_sqrt))
range_of(unary.Log)(_unary(_log))
range_of(unary.Floor, unary.Ceil, unary.Round)(_unary(_round))


@range_of(unary.Sign)
def _sign(op: unary.Sign, ranges: KnownRanges) -> Range:
    return Interval(-1, 1, op.input.type.element_type in FLOATS)


# Bitwise operators


@range_of(logical.BitwiseAnd, logical.BitwiseOr, logical.BitwiseXor)
def _bitwise(op: Any, ranges: KnownRanges) -> Range:
    range_ = _hull(ranges, op.input0, op.input1)
    if range_ is None:
        return None
    # The result fits in as many bits as the operands; it is negative only if one of them is.
    low, high = int(range_.low), int(range_.high)
    count = max(max(0, high).bit_length(), max(0, ~low).bit_length())
    return Interval(-(2**count) if low < 0 else 0, 2**count - 1)


@range_of(logical.BitwiseNot)
def _bitwise_not(op: logical.BitwiseNot, ranges: KnownRanges) -> Range:
    range_, type_range = ranges.of(op.input), of_type(op.input.type.element_type)
    if range_ is None or type_range is None or type_range.low == 0:
        return None
    return Interval(~int(range_.high), ~int(range_.low))
