"""The range of each integer in a model, under assumptions about its inputs and sizes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

from crosschip.ir import Dim, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import Dimension, name_of
from crosschip.ir.types import FLOATS, INTEGERS
from crosschip.lowering.ranges.interval import Interval, of_elements, of_size, of_type
from crosschip.lowering.ranges.rules import RULES, Range
from crosschip.lowering.ranges.sizes import bounds_of
from crosschip.lowering.ranges.upper_bounds import end_of, end_of_known
from crosschip.ops import Operator
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.definition.slots import ComputedParameter

Source = Operand | str | Dimension
"""The subject of an assumption: an input, a named dimension, or an expression over dimensions."""

LONGEST = 2**31 - 1
"""The maximum size of a dynamic dimension without other bounds."""
_MAX_FLOATS = 4
"""The maximum number of elements of a float constant whose range is computed."""


Known = Mapping[Operand | str, tuple[Range, frozenset[Source]]]
"""Ranges of operands and of data-dependent sizes (by name), with the assumptions they rely on."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions about the inputs and sizes of a model.

    Attributes:
        inputs: the ranges of integer inputs; other inputs may hold any values.
        most: the greatest values of some named dimensions.
        longest: the greatest value of the other named dimensions.
        names: the dimensions that runs can be checked for; others may have any size.
        fit: the range that expressions over these dimensions must stay in.
        most_of_expressions: the greatest values of some expressions that may exceed `fit`.
        closest: the greatest value of the other such expressions; `None` for the end of `fit`.
    """

    inputs: Mapping[Operand, Interval]
    most: Mapping[str, int]
    longest: int
    names: Collection[str]
    fit: Interval
    most_of_expressions: Mapping[Dimension, int] = field(default_factory=dict)
    closest: int | None = None

    def most_of(self, name: str) -> int:
        """Return the greatest value of a named dimension."""
        return min(self.most.get(name, self.longest), int(self.fit.high))

    def tightest(self, input: Interval, longest: int) -> Assumptions:
        """Return assumptions with inputs limited to one range, and sizes to a greatest value."""
        inputs = {o: i.within(input.low, input.high) for o, i in self.inputs.items()}
        return replace(self, inputs=inputs).smaller(longest)

    def smaller(self, longest: int) -> Assumptions:
        """Return assumptions with sizes and expressions limited to a greatest value."""
        return replace(self, longest=longest, closest=longest)

    def most_of_expression(self, expression: Dimension) -> int:
        """Return the greatest value of an expression that may exceed `fit`."""
        most = int(self.fit.high) if self.closest is None else self.closest
        return self.most_of_expressions.get(expression, most)

    def tightened(self, sources: Collection[Source], longest: int) -> Assumptions:
        """Return tighter assumptions on some sources: on dimensions, else expressions, else inputs.

        Args:
            sources: the sources to tighten; of inputs, the widest ranges are halved.
            longest: the greatest value for dimensions and expressions.
        """
        sizes = {name for name in sources if isinstance(name, str)} - self.most.keys()
        if sizes:
            return replace(self, most={**self.most, **dict.fromkeys(sizes, longest)})
        expressions = {source for source in sources if isinstance(source, Dimension)}
        expressions -= self.most_of_expressions.keys()
        if expressions:
            most = {**self.most_of_expressions, **dict.fromkeys(expressions, longest)}
            return replace(self, most_of_expressions=most)
        ranges = {o: interval for o, interval in self.inputs.items() if o in sources}
        widest = int(max(interval.high for interval in ranges.values()))
        halves = {
            operand: interval.within(-(widest + 1) // 2, widest // 2)
            for operand, interval in ranges.items()
            if interval.high == widest
        }
        return replace(self, inputs={**self.inputs, **halves})


class Ranges:
    """The ranges of a model's operands, with the assumptions that each relies on.

    Args:
        assumed: the assumptions.
        known: ranges of operands that other models produce.
        floats: whether floats are computed in float32 or better, so that their ranges are valid.
    """

    def __init__(self, assumed: Assumptions, known: Known, *, floats: bool) -> None:
        self._most = {name: assumed.most_of(name) for name in assumed.names}
        self._assumed = assumed
        self._known = known
        self._floats = floats
        self._computed_ranges: dict[Operand | str, tuple[Range, frozenset[Source]]] = {
            operand: (interval, frozenset([operand]))
            for operand, interval in assumed.inputs.items()
        }
        self._ends: dict[Operand, Dim | None] = {}
        self._sources: set[Source] = set()

    @property
    def computed_ranges(self) -> Known:
        """Return all ranges computed so far, with the assumptions they rely on."""
        return self._computed_ranges

    def of(self, operand: Operand) -> Range:
        """Return the range of an input, a constant or an operation's output."""
        entry = self._computed_ranges.get(operand) or self._known.get(operand)
        if entry is None:
            entry = self._computed_ranges[operand] = _range_of_type(operand), frozenset()
        self._sources |= entry[1]
        return entry[0]

    def fits(self, operand: Operand, interval: Interval) -> bool:
        """Return whether an operand is known to be in a range."""
        range_ = self.of(operand)
        return range_ is not None and range_ in interval

    def size(self, size: Dim) -> Interval:
        """Return the range of a dimension."""
        return self.value(size).within(0, math.inf)

    def value(self, value: Dim) -> Interval:
        """Return the range of an expression over dimensions."""
        if isinstance(value, int):
            return Interval(value, value)
        range_ = of_size(value, {name: self._most_of(name) for name in value.names})
        if not value.names <= self._most.keys():
            return range_
        self._sources |= value.names
        fit = self._assumed.fit
        if range_ in fit and value not in self._assumed.most_of_expressions:
            return range_
        self._sources.add(value)
        return range_.within(fit.low, self._assumed.most_of_expression(value))

    def _most_of(self, name: str) -> int:
        """Return the greatest value of a named dimension."""
        if name in self._most:
            return self._most[name]
        entry = self._computed_ranges.get(name) or self._known.get(name)
        if entry is None or entry[0] is None:
            return LONGEST
        self._sources |= entry[1]
        return int(entry[0].high)

    def sources(self, *operands: Operand) -> frozenset[Source]:
        """Return all assumptions that the ranges of some operands rely on."""
        self._sources = set()
        for operand in operands:
            self.of(operand)
        return frozenset(self._sources)

    def follow(self, operation: Operation) -> None:
        """Compute the ranges of an operation's outputs."""
        self._follow_sizes(operation)
        if type(operation) not in RULES and all(
            output.type.element_type in FLOATS for output in operation.outputs
        ):
            return
        self._sources = set()
        results = zip(operation.outputs, self._by_rule(operation), strict=True)
        ranges = [self._shape_value_range(output) or range_ for output, range_ in results]
        if len(ranges) == 1:
            ranges = [self._limited_by_end(operation, ranges[0])]
        sources = frozenset(self._sources)
        for output, range_ in zip(operation.outputs, ranges, strict=True):
            type_range = of_type(output.type.element_type)
            if type_range is not None and (range_ is None or range_ not in type_range):
                range_ = type_range  # integers wrap around
            self._computed_ranges[output] = range_, sources

    def _follow_sizes(self, operation: Operation) -> None:
        """Compute the ranges of dimensions that an operation introduces."""
        for index, output in enumerate(operation.outputs):
            new = {
                axis: name
                for axis, size in enumerate(output.type.shape or ())
                if (name := name_of(size)) is not None
                and name not in self._most
                and name not in self._computed_ranges
                and name not in self._known
            }
            if not new:
                continue
            self._sources = set()
            bounds = bounds_of(operation, index, self)
            for axis, name in new.items():
                bound = bounds[axis] if axis < len(bounds) else None
                if bound is not None and (bound.high < LONGEST or self._sources):
                    range_ = bound.hull(Interval(0, 0)).within(0, LONGEST)
                    self._computed_ranges[name] = range_, frozenset(self._sources)

    def _limited_by_end(self, operation: Operation, range_: Range) -> Range:
        """Return a range limited by the output's bound as an expression, if it does not fit."""
        end = end_of(operation, self._upper_bound)
        if end is None:
            return range_
        self._ends[operation.outputs[0]] = end
        if range_ is None or range_.low < 0 or range_ in self._assumed.fit:
            return range_
        return range_.within(0, self.value(end).high)

    def _upper_bound(self, operand: Operand) -> Dim | None:
        if operand not in self._ends:
            self._ends[operand] = end_of_known(operand)
        return self._ends[operand]

    def _by_rule(self, operation: Operation) -> Sequence[Range]:
        """Return the ranges of the outputs by the operator's rule."""
        outputs = operation.outputs
        unknown: list[Range] = [None] * len(outputs)
        rule = RULES.get(type(operation))
        if rule is None or not isinstance(operation, Operator) or operation.quantized_inputs():
            return unknown
        kinds = [output.type.element_type for output in outputs]
        if not any(kind not in FLOATS or self._floats for kind in kinds):
            return unknown
        try:
            results = rule(operation, self)
        except (ComputedParameter, UnknownRank):
            return unknown
        if isinstance(results, Interval) or results is None:
            results = [results] * len(outputs)
        low, high = operation.fused.bounds
        return [
            None
            if range_ is None or (kind in FLOATS and not self._floats)
            else range_.within(low, high)
            if math.isfinite(high) or math.isfinite(low)
            else range_
            for range_, kind in zip(results, kinds, strict=True)
        ]

    def _shape_value_range(self, operand: Operand) -> Range:
        """Return the range of integers that are known to be computed from shapes."""
        values = operand.type.shape_value
        if not values or operand.type.element_type not in INTEGERS:
            return None
        return Interval.hull_of(map(self.value, values))


def _range_of_type(operand: Operand) -> Range:
    """Return the range of a constant's elements, or of an element type."""
    element_type, shape = operand.type.element_type, operand.type.static_shape
    type_range = of_type(element_type)
    if not operand.is_constant or shape is None or operand.type.quantization is not None:
        return type_range
    count = math.prod(shape)
    if not count:
        return Interval(0, 0)
    if type_range is None and (element_type not in FLOATS or count > _MAX_FLOATS):
        return None
    value = operand.value
    return None if value is None else of_elements(value)
