"""Checks that integers fit devices that compute them in fewer bits.

A device may declare that it computes int64 in int32, or in how many bits it computes an operation.
Operations are placed on it only if their values are shown to fit. The values of model inputs are
not known at compile time. So each input gets the widest range under which all values that the
device derives from it fit, and runs with inputs outside the range are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from crosschip.hal.capabilities import Capabilities, Precision
from crosschip.hal.conditions import Condition, ConditionalOffer, InputRange, SizeRange
from crosschip.hal.device import Device
from crosschip.hal.options import Options
from crosschip.hal.support import Rule, Support
from crosschip.ir import DeviceError, ElementType, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import Dimension, name_of, symbol
from crosschip.ir.types import INTEGERS
from crosschip.lowering.decomposition import Ask
from crosschip.lowering.ranges.analysis import LONGEST, Assumptions, Known, Ranges, Source
from crosschip.lowering.ranges.interval import Interval, of_type
from crosschip.ops import Operator
from crosschip.ops.standard.creation import Rank, ShapeOf

_BOUNDED_SIZE = 2**20
"""The size that dynamic dimensions are limited to, if sums or indices may not fit otherwise."""
_TIGHTEST = Interval(-2, 1)
"""The narrowest range that an input may be limited to; it holds a mask."""
_OF_SHAPES = (ShapeOf, Rank)
"""Operators that do not read elements."""


class Narrowing:
    """Queries a device that computes integers in fewer bits; refuses what may not fit.

    Callers that run accepted operations must check the offer's conditions. A query about parts of
    an operation of an earlier model uses the ranges of that model's operands; the conditions that
    the parts need are added to that operation's.

    Args:
        name: the device's name.
        ask: returns the device's offer for a model.
        capabilities: the device's capabilities.
        options: the compile options.
        conditions: whether an offer may have conditions on elements of inputs; otherwise operations
            that would need them are refused.
    """

    def __init__(
        self,
        name: str,
        ask: Ask,
        capabilities: Capabilities,
        options: Options,
        *,
        conditions: bool = True,
    ) -> None:
        self._name = name
        self._ask = ask
        self._bits = _Bits(capabilities.narrowed)
        self._options = options
        self._conditions = conditions
        self._offers: dict[Model, ConditionalOffer] = {}
        self._origins: dict[Operand, tuple[_Query, int]] = {}

    def __call__(self, model: Model) -> ConditionalOffer:
        """Return the device's offer, without operations that are not shown to fit."""
        if model not in self._offers:
            self._offers[model] = self._offer(model)
        return self._offers[model]

    def _offer(self, model: Model) -> ConditionalOffer:
        offer = self._ask(model)
        floats = self._options.precision is Precision.FLOAT32
        origin = next(
            (self._origins[o] for o in model.outputs.values() if o in self._origins), None
        )
        if origin is None:
            widest = self._assumptions(model)
            search = _Search(model, offer.answers, self._bits, widest, {}, floats=floats)
            search.run(widest.tightest(_TIGHTEST, self._bits.size_limit))
            query = _Query(model, search.assumed, {}, [])
            indices: Sequence[int] = range(len(model.operations))
        else:
            query, index = origin
            assumed, known = query.assumed, query.ranges
            search = _Search(model, offer.answers, self._bits, assumed, known, floats=floats)
            search.run(assumed.smaller(self._bits.size_limit))
            indices = [index] * len(model.operations)
        query.ranges.update(search.ranges.computed_ranges)
        for source, users in search.needs().items():
            condition = query.condition(source, search.assumed, self._name)
            if condition is not None:
                operations = frozenset(indices[user] for user in users)
                query.conditions.append(replace(condition, operations=operations))
        for operation, index in zip(model.operations, indices, strict=True):
            self._origins.update(dict.fromkeys(operation.outputs, (query, index)))
        answers = [search.declined.get(i, answer) for i, answer in enumerate(offer.answers)]
        return ConditionalOffer(answers, offer.groups, query.conditions)

    def _assumptions(self, model: Model) -> Assumptions:
        """Return the widest assumptions: all values that the device's integer types hold."""
        inputs = {}
        for operand in model.inputs.values() if self._conditions else ():
            widest = self._bits.widest(operand)
            if widest is not None:
                inputs[operand] = widest
        sizes = [size for operand in model.inputs.values() for size in operand.type.shape or ()]
        names = frozenset(name for size in sizes if (name := name_of(size)))
        most = {entry.name: entry.most for entry in self._options.sizes.ranges}
        return Assumptions(inputs, most, LONGEST, names, self._bits.sizes)


@dataclass(frozen=True, slots=True)
class _Query:
    """A queried model that is not part of another one.

    Attributes:
        model: the model.
        assumed: the assumptions about its inputs and sizes.
        ranges: the ranges of its operands, and of the operands of its operations' parts.
        conditions: the conditions of its operations and their parts.
    """

    model: Model
    assumed: Assumptions
    ranges: dict[Operand | str, tuple[Interval | None, frozenset[Source]]]
    conditions: list[Condition]

    def condition(self, source: Source, assumed: Assumptions, device: str) -> Condition | None:
        """Return an assumption as a condition; `None` if it always holds."""
        if isinstance(source, Dimension):
            most = assumed.most_of_expression(source)
            return SizeRange(source, int(assumed.fit.low), most, device)
        if isinstance(source, str):
            return SizeRange(symbol(source), 0, assumed.most_of(source), device)
        limit = assumed.inputs[source]
        if limit == of_type(source.type.element_type):
            return None
        name = next(name for name, operand in self.model.inputs.items() if operand is source)
        return InputRange(name, int(limit.low), int(limit.high), device)


class _Bits:
    """The integer types and bits that a device computes in.

    Args:
        narrowed: the narrower type that each type is computed in.

    Attributes:
        sizes: the range for values that are computed from sizes.
        size_limit: the limit for dynamic dimensions, if sums or indices may not fit otherwise.
    """

    def __init__(self, narrowed: Mapping[ElementType, ElementType]) -> None:
        self.narrowed = narrowed
        self._narrow_ranges: dict[ElementType, Interval] = {}
        for wide, narrow in narrowed.items():
            narrow_range = of_type(narrow)
            if narrow_range is None or of_type(wide) is None:
                raise DeviceError(f"capabilities: {wide} cannot be narrowed to {narrow}")
            self._narrow_ranges[wide] = narrow_range
        self.sizes = min(
            [Interval(-LONGEST - 1, LONGEST), *self._narrow_ranges.values()],
            key=lambda narrow_range: narrow_range.high,
        )

        self.size_limit = min(_BOUNDED_SIZE, int(self.sizes.high + 1) // 2)

    def widest(self, operand: Operand) -> Interval | None:
        """Return the range of an integer operand on the device; `None` for other operands."""
        element_type = operand.type.element_type
        if element_type not in INTEGERS or operand.type.quantization is not None:
            return None
        return self._narrow_ranges.get(element_type) or of_type(element_type)

    def limit_of(self, operand: Operand, bits: int | None) -> Interval | None:
        """Return the range that an operand must stay in; `None` if its type already ensures it.

        Args:
            operand: an input or output of an operation.
            bits: the number of bits that the device computes the operation in, if it declares one.
        """
        widest = self.widest(operand)
        if widest is None or bits is None or widest.high < 2**bits:
            return self._narrow_ranges.get(operand.type.element_type)
        return widest.within(-(2**bits), 2**bits)

    def refusal(
        self, operation: Operation, slot: str, operand: Operand, bits: int | None, range_: object
    ) -> Support:
        """Return the refusal of an operation whose values may not fit."""
        element_type = operand.type.element_type
        narrow = f"{bits} bits" if bits is not None else self.narrowed[element_type]
        detail = f"{element_type} is computed in {narrow}, which may not hold its values"
        if isinstance(range_, Interval):
            detail = f"{element_type} is computed in {narrow}, which does not hold values {range_}"
        return Support.no(operation, slot, detail, Rule.RANGE)


class _Search:
    """The search for the widest assumptions under which as much as possible fits.

    Args:
        model: the model, or parts of an operation of an earlier model.
        answers: the device's answers.
        bits: the limits of integers.
        assumed: the widest assumptions.
        known: the ranges of operands of the earlier model.
        floats: whether ranges of floats are computed.

    Attributes:
        assumed: the assumptions that are needed.
        ranges: the ranges under these assumptions.
        declined: refusals of operations that do not fit under any assumptions.
    """

    def __init__(
        self,
        model: Model,
        answers: Sequence[Support],
        bits: _Bits,
        assumed: Assumptions,
        known: Known,
        *,
        floats: bool,
    ) -> None:
        self._model = model
        self._answers = answers
        self._bits = bits
        self._known = known
        self._floats = floats
        self._limits = self._find_limits()
        self.declined: dict[int, Support] = {}
        self._assume(assumed)

    def run(self, tightest: Assumptions) -> None:
        """Find the widest assumptions; refuse operations that do not fit under the tightest."""
        widest = self.assumed
        if self._mismatch() is None:
            return
        self._assume(tightest)
        for index, slot, operand in self._mismatches():
            operation, bits = self._model.operations[index], self._answers[index].bits
            range_ = self.ranges.of(operand)
            self.declined[index] = self._bits.refusal(operation, slot, operand, bits, range_)
        self._assume(widest)
        while (mismatch := self._mismatch()) is not None:
            self._assume(
                self.assumed.tightened(self.ranges.sources(mismatch[2]), self._bits.size_limit)
            )

    def needs(self) -> Mapping[Source, set[int]]:
        """Return the assumptions, with the indices of the operations that rely on them.

        Operations that the device refuses are included: it may run their parts.
        """
        needed: dict[Source, set[int]] = {}
        for index, limits in self._limits.items():
            if index not in self.declined:
                for source in self.ranges.sources(*(operand for _, operand, _ in limits)):
                    needed.setdefault(source, set()).add(index)
        return needed

    def _assume(self, assumed: Assumptions) -> None:
        self.assumed = assumed
        self.ranges = Ranges(assumed, self._known, floats=self._floats)
        for operation in self._model.operations if self._limits else ():
            self.ranges.follow(operation)

    def _mismatch(self) -> tuple[int, str, Operand] | None:
        """Return the first operation that may not fit, with its slot and operand, or `None`."""
        return next(self._mismatches(), None)

    def _mismatches(self) -> Iterator[tuple[int, str, Operand]]:
        """Yield operations that may not fit, each with the first such slot and operand."""
        for index, limits in self._limits.items():
            if self._answers[index] and index not in self.declined:
                mismatches = (
                    (index, slot, operand)
                    for slot, operand, limit in limits
                    if not self.ranges.fits(operand, limit)
                )
                yield from islice(mismatches, 1)

    def _find_limits(self) -> dict[int, list[tuple[str, Operand, Interval]]]:
        """Return, per operation index, the operands that must stay in a range.

        Each has its slot and its range.
        """
        limits: dict[int, list[tuple[str, Operand, Interval]]] = {}
        if not self._bits.narrowed and all(answer.bits is None for answer in self._answers):
            return limits
        for index, answer in enumerate(self._answers):
            for slot, operand in self._operands(index):
                limit = self._bits.limit_of(operand, answer.bits)
                if limit is not None:
                    limits.setdefault(index, []).append((slot, operand, limit))
        return limits

    def _operands(self, index: int) -> Iterator[tuple[str, Operand]]:
        """Yield operands and outputs of an operation with slots, except constant parameters."""
        operation = self._model.operations[index]
        slots = operation.slots if isinstance(operation, Operator) else ()
        parameters = {slot.name for slot in slots if slot.parameter}
        for slot, operand in operation.named_inputs():
            is_parameter = operand.is_constant and slot in parameters
            if not is_parameter and not isinstance(operation, _OF_SHAPES):
                yield slot, operand
        yield from (("output", output) for output in operation.outputs)
        for body in operation.bodies:
            for inner in body.operations:
                yield from (("body", operand) for _, operand in inner.named_inputs())
                yield from (("body", operand) for operand in inner.outputs)


def narrowing(device: Device, options: Options) -> Narrowing:
    """Return the narrowing queries to a device."""
    return Narrowing(
        device.name, lambda model: device.query(model, options), device.capabilities(), options
    )


def conditions_of(device: Device, model: Model, options: Options) -> Sequence[Condition]:
    """Return the conditions under which a device runs a whole model.

    Raises:
        DeviceError: an operation does not fit under any conditions.
    """
    offer = narrowing(device, options)(model)
    for answer in offer.answers:
        if not answer:
            raise DeviceError(f"{device.name}: {answer.reason}")
    return offer.conditions
