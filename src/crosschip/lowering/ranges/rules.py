"""The range of what each operator makes, from the ranges of what it reads: a function an operator.

An operator without one makes anything that its output's type holds. A rule need not think of
integers that wrap around: what leaves the type may be anything of the type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
"""What is known of the values of an operand; `None` if nothing is."""


class Facts(Protocol):
    """The facts that rules rely on."""

    def of(self, operand: Operand) -> Range:
        """The range of an operand."""

    def size(self, size: Dim) -> Interval:
        """The range of the size of an axis."""


Rule = Callable[[Any, Facts], Range | Sequence[Range]]
RULES: dict[type, Rule] = {}
"""The rules by operator: one range for all outputs, or one for each."""


def makes(*operators: type[Operator]) -> Callable[[Rule], Rule]:
    """Decorator: the function is the rule of these operators."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(operators, rule))
        return rule

    return register


def _hull(facts: Facts, *operands: Operand | None) -> Range:
    """The range of elements of any of some operands."""
    ranges = [facts.of(operand) for operand in operands if operand is not None]
    known = [each for each in ranges if each is not None]
    return known[0].hull(*known[1:]) if known and len(known) == len(ranges) else None


@makes(
    *(layout.Reshape, layout.Transpose, layout.Squeeze, layout.Unsqueeze, layout.Flatten),
    *(layout.Expand, rearranging.Tile, rearranging.Roll, rearranging.ReverseSequence),
    *(slicing.Slice, slicing.StridedSlice, slicing.Crop),
    *(blocks.ChannelShuffle, blocks.DepthToSpace, blocks.SpaceToDepth, blocks.BatchToSpaceND),
    *(joining.Split, joining.Unstack, conversion.Assign),
    *(indexing.Gather, indexing.GatherND, indexing.GatherElements),
    *(reduction.ReduceMax, reduction.ReduceMin),
)
def _moved(op: Any, facts: Facts) -> Range:
    range_ = facts.of(op.input)
    if range_ is None or not isinstance(op, reduction.Reduction):
        return range_
    # No elements give an end of the type.
    shape = op.input.type.shape
    axes = op.axes or range(len(shape or ()))
    some = shape is not None and all(facts.size(shape[axis]).low > 0 for axis in axes)
    whole = of_type(op.input.type.element_type)
    return range_ if some else whole


@makes(joining.Concat, joining.Stack)
def _joined(op: joining.Concat | joining.Stack, facts: Facts) -> Range:
    return _hull(facts, *op.parts)


@makes(joining.Meshgrid)
def _spread(op: joining.Meshgrid, facts: Facts) -> Sequence[Range]:
    return [facts.of(part) for part in op.parts]


@makes(logical.Where)
def _either(op: logical.Where, facts: Facts) -> Range:
    return _hull(facts, op.input0, op.input1)


@makes(padding.Pad)
def _padded(op: padding.Pad, facts: Facts) -> Range:
    range_ = _hull(facts, op.input, op.value)
    return range_ if range_ is None or op.value is not None else range_.hull(Interval(0, 0))


@makes(rearranging.Trilu)
def _masked(op: rearranging.Trilu, facts: Facts) -> Range:
    range_ = facts.of(op.input)
    return None if range_ is None else range_.hull(Interval(0, 0))


@makes(indexing.ScatterElements, indexing.ScatterND)
def _written(op: indexing.ScatterElements | indexing.ScatterND, facts: Facts) -> Range:
    overwrites = op.reduction in (indexing.Scatter.NONE, indexing.Scatter.MAX, indexing.Scatter.MIN)
    return _hull(facts, op.input, op.updates) if overwrites else None


@makes(
    *(comparison.Equal, comparison.NotEqual, comparison.Less, comparison.LessEqual),
    *(comparison.Greater, comparison.GreaterEqual),
    *(logical.Not, logical.And, logical.Or, logical.Xor),
    *(reduction.ReduceAll, reduction.ReduceAny, unary.IsNaN, unary.IsInf),
)
def _truth(op: Operator, facts: Facts) -> Range:
    return TRUTH


@makes(conversion.Cast)
def _cast(op: conversion.Cast, facts: Facts) -> Range:
    own, range_ = op.input.type.element_type, facts.of(op.input)
    if op.dtype in FLOATS:
        return None if range_ is None else range_.rounded
    if range_ is None or own not in FLOATS:
        return range_
    # What infinities and NaN become, nobody relies on.
    return range_.whole


# Tensors from descriptions


@makes(creation.ShapeOf)
def _shape(op: creation.ShapeOf, facts: Facts) -> Range:
    sizes = op.input.type.shape
    if not sizes:
        return Interval(0, 0) if sizes == () else None
    first, *rest = map(facts.size, sizes)
    return first.hull(*rest)


@makes(creation.Range)
def _range(op: creation.Range, facts: Facts) -> Range:
    return _hull(facts, op.start, op.end) if op.start.type.element_type not in FLOATS else None


@makes(creation.Fill, creation.FillLike)
def _filled(op: creation.Fill | creation.FillLike, facts: Facts) -> Range:
    return facts.of(op.value)


@makes(creation.OneHot)
def _hot(op: creation.OneHot, facts: Facts) -> Range:
    return _hull(facts, op.on_value, op.off_value)


# Searches


def _indices(facts: Facts, sizes: Sequence[Dim] | None) -> Range:
    """Indices on one of some axes."""
    if sizes is None:
        return None
    most = max((facts.size(size).high for size in sizes), default=1)
    return Interval(0, max(0, most - 1))


@makes(searching.ArgMax, searching.ArgMin)
def _place(op: searching.ArgMax | searching.ArgMin, facts: Facts) -> Range:
    shape = op.input.type.shape
    return None if shape is None else _indices(facts, [shape[op.axis]])


@makes(searching.TopK)
def _best(op: searching.TopK, facts: Facts) -> Sequence[Range]:
    shape = op.input.type.shape
    places = None if shape is None else _indices(facts, [shape[op.axis]])
    return [facts.of(op.input), places]


@makes(searching.NonZero)
def _places(op: searching.NonZero, facts: Facts) -> Range:
    return _indices(facts, op.input.type.shape)


@makes(searching.Unique)
def _different(op: searching.Unique, facts: Facts) -> Sequence[Range]:
    shape = op.input.type.shape
    if shape is None:
        return [facts.of(op.input), None, None, None]
    count = _count(facts, shape if op.axis is None else [shape[op.axis]])
    place = Interval(0, max(0, count.high - 1))
    return [facts.of(op.input), place, place, count]


@makes(
    pooling.MaxPool1D,
    pooling.MaxPool2D,
    pooling.MaxPool3D,
    adaptive_pooling.AdaptiveMaxPool1D,
    adaptive_pooling.AdaptiveMaxPool2D,
    adaptive_pooling.AdaptiveMaxPool3D,
)
def _greatest(
    op: pooling.MaxPool | adaptive_pooling.AdaptiveMaxPool, facts: Facts
) -> Sequence[Range]:
    shape = op.input.type.shape
    places = None if shape is None else _indices(facts, [product(shape[2:])])
    return [None, None if places is None else places.hull(Interval(-1, 0))][: len(op.outputs)]


@makes(suppression.NonMaxSuppressionIndices)
def _count_of_selected(op: suppression.NonMaxSuppressionIndices, facts: Facts) -> Range:
    return _indices(facts, op.scores.type.shape)


# Sums and products of several elements


def _count(facts: Facts, sizes: Sequence[Dim]) -> Interval:
    """The number of elements on some axes, or none."""
    return facts.size(product(tuple(sizes))).hull(Interval(0, 0))


def _axes(op: reduction.Reduction) -> Sequence[Dim] | None:
    shape = op.input.type.shape
    return None if shape is None else [shape[axis] for axis in op.axes or range(len(shape))]


@makes(reduction.ReduceSum, reduction.ReduceL1)
def _sum(op: reduction.Reduction, facts: Facts) -> Range:
    range_, sizes = facts.of(op.input), _axes(op)
    if range_ is None or sizes is None:
        return None
    each = range_.magnitude if isinstance(op, reduction.ReduceL1) else range_
    return each * _count(facts, sizes)


@makes(reduction.ReduceProd)
def _factors(op: reduction.ReduceProd, facts: Facts) -> Range:
    range_, sizes = facts.of(op.input), _axes(op)
    if range_ is None or sizes is None:
        return None
    far, count = max(1, range_.magnitude.high), _count(facts, sizes).high
    if count > _MANY and far > 1:
        return None
    far = far ** min(count, _MANY)
    return Interval(0 if range_.low >= 0 else -far, far)


_MANY = 64
"""So many factors make more than an integer holds, unless none of them is above 1."""


@makes(reduction.ReduceMean)
def _mean(op: reduction.ReduceMean, facts: Facts) -> Range:
    range_ = facts.of(op.input)
    if range_ is None or op.input.type.element_type not in FLOATS:
        return None
    mean = range_.rounded
    return Interval(mean.low, mean.high, True)


@makes(reduction.CumSum)
def _running(op: reduction.CumSum, facts: Facts) -> Range:
    range_, shape = facts.of(op.input), op.input.type.shape
    if range_ is None or shape is None:
        return None
    return range_ * _count(facts, [shape[op.axis]])


@makes(MatMul)
def _product(op: MatMul, facts: Facts) -> Range:
    x, y, shape = facts.of(op.x), facts.of(op.y), op.x.type.shape
    if x is None or y is None or not shape:
        return None
    depth = shape[-2] if op.transpose_x and len(shape) > 1 else shape[-1]
    return x * y * _count(facts, [depth])


@makes(arithmetic.Sum)
def _total(op: arithmetic.Sum, facts: Facts) -> Range:
    total: Range = Interval(0, 0)
    for term in op.terms:
        range_ = facts.of(term)
        total = None if range_ is None or total is None else total + range_
    return total


# Arithmetic


def _binary(
    combine: Callable[[Interval, Interval], Range],
) -> Callable[[Any, Facts], Range]:
    """The rule of an operator on two tensors, from the rule for two ranges."""

    def rule(op: Any, facts: Facts) -> Range:
        first, second = facts.of(op.input0), facts.of(op.input1)
        return None if first is None or second is None else combine(first, second)

    return rule


makes(arithmetic.Add)(_binary(lambda a, b: a + b))
makes(arithmetic.Sub)(_binary(lambda a, b: a - b))
makes(arithmetic.Mul)(_binary(lambda a, b: a * b))
makes(arithmetic.SquaredDifference)(_binary(lambda a, b: _squares(a - b)))


@makes(arithmetic.Max)
def _greater(op: arithmetic.Max, facts: Facts) -> Range:
    return _extreme(op, facts, max)


@makes(arithmetic.Min)
def _less(op: arithmetic.Min, facts: Facts) -> Range:
    return _extreme(op, facts, min)


def _extreme(op: Any, facts: Facts, choose: Callable[[float, float], float]) -> Range:
    first, second = facts.of(op.input0), facts.of(op.input1)
    if first is None or second is None:
        return None
    low, high = choose(first.low, second.low), choose(first.high, second.high)
    chosen = Interval(low, high, first.special or second.special)
    # Where one may be infinite, the other one may be what is left.
    return chosen.hull(first, second) if chosen.special else chosen


@makes(arithmetic.Div, arithmetic.FloorDiv)
def _quotient(op: arithmetic.Div | arithmetic.FloorDiv, facts: Facts) -> Range:
    first, second = facts.of(op.input0), facts.of(op.input1)
    if first is None or second is None:
        return None
    if op.input0.type.element_type in FLOATS:
        return first / second if isinstance(op, arithmetic.Div) else None
    # Towards 0, or one further down; by 0 there is 0.
    far = first.magnitude.high
    low = 0 if first.low >= 0 and second.low >= 0 else -far
    high = 0 if first.high <= 0 <= second.low else far
    below = isinstance(op, arithmetic.FloorDiv) and low < 0
    nearest = max(1, second.magnitude.low)
    return Interval(-(-low // nearest) - below, high // nearest)


@makes(arithmetic.Mod)
def _rest(op: arithmetic.Mod, facts: Facts) -> Range:
    first, second = facts.of(op.input0), facts.of(op.input1)
    if first is None or second is None or op.input0.type.element_type in FLOATS:
        return None
    most = max(0, second.magnitude.high - 1)
    least_source = first if op.fmod else second
    low = 0 if least_source.low >= 0 else -most
    high = 0 if least_source.high <= 0 else most
    return Interval(low, high)


@makes(arithmetic.Pow)
def _power(op: arithmetic.Pow, facts: Facts) -> Range:
    base, exponent = facts.of(op.input0), facts.of(op.input1)
    if base is None or exponent is None or op.input0.type.element_type in FLOATS:
        return None
    if exponent.high > _MANY:
        return None
    far = max(1, base.magnitude.high) ** max(0, exponent.high)
    return Interval(0 if base.low >= 0 else -far, far)


@makes(arithmetic.Clip)
def _clipped(op: arithmetic.Clip, facts: Facts) -> Range:
    range_, bounds = facts.of(op.input), (op.min, op.max)
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


@makes(Relu)
def _positive(op: Relu, facts: Facts) -> Range:
    range_ = facts.of(op.input)
    return None if range_ is None else range_.within(0, math.inf)


def _unary(of: Callable[[Interval], Range]) -> Callable[[Any, Facts], Range]:
    """The rule of an operator on one tensor, from the rule for its range."""

    def rule(op: Any, facts: Facts) -> Range:
        range_ = facts.of(op.input)
        return None if range_ is None else of(range_)

    return rule


def _squares(range_: Interval) -> Interval:
    return range_.magnitude * range_.magnitude


def _wholes(range_: Interval) -> Interval:
    near = range_.rounded.whole
    return Interval(float(near.low), float(near.high), range_.special)


def _root(range_: Interval) -> Interval:
    special = range_.special or range_.low < 0
    low, high = (math.sqrt(max(0, end)) for end in (range_.low, range_.high))
    return Interval(low, high, special).rounded


_LEAST_LOGARITHM = -104.0
"""Less than the logarithm of any number of float32 but 0."""


def _logarithm(range_: Interval) -> Interval:
    low = math.log(range_.low) if range_.low > 0 else _LEAST_LOGARITHM
    high = math.log(range_.high) if range_.high > 0 else _LEAST_LOGARITHM
    special = range_.special or range_.low <= 0
    return Interval(low - _OFF, high + _OFF, special).rounded


_OFF = 1e-3
"""How far an engine's own functions may be off."""

makes(unary.Abs)(_unary(lambda range_: range_.magnitude))
makes(unary.Neg)(_unary(lambda range_: -range_))
makes(unary.Square)(_unary(_squares))
makes(unary.Sqrt)(_unary(_root))
makes(unary.Log)(_unary(_logarithm))
makes(unary.Floor, unary.Ceil, unary.Round)(_unary(_wholes))


@makes(unary.Sign)
def _sign(op: unary.Sign, facts: Facts) -> Range:
    return Interval(-1, 1, op.input.type.element_type in FLOATS)


# Bits


@makes(logical.BitwiseAnd, logical.BitwiseOr, logical.BitwiseXor)
def _bits(op: Any, facts: Facts) -> Range:
    range_ = _hull(facts, op.input0, op.input1)
    if range_ is None:
        return None
    # As many bits as hold either operand hold the result; none below 0 needs a sign.
    low, high = int(range_.low), int(range_.high)
    count = max(max(0, high).bit_length(), max(0, ~low).bit_length())
    return Interval(-(2**count) if low < 0 else 0, 2**count - 1)


@makes(logical.BitwiseNot)
def _inverse(op: logical.BitwiseNot, facts: Facts) -> Range:
    range_, whole = facts.of(op.input), of_type(op.input.type.element_type)
    if range_ is None or whole is None or whole.low == 0:
        return None
    return Interval(~int(range_.high), ~int(range_.low))
