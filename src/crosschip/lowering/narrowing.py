"""Integers on devices that compute them in fewer bits than they have.

A device whose capabilities say that it computes int64 in int32, or whose answer says how many bits
it computes an operation in, gets operations whose values are shown to fit. Of what comes into a
model nothing can be shown, so runs are refused in which an input is beyond a range: the widest one
in which all that the device makes of it fits.
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

_FEWER = 2**20
"""The most elements of an axis, where more of them would be too many to count or add up."""
_TIGHTEST = Interval(-2, 1)
"""The least range of an input that is worth computing on: it holds a mask."""
_OF_SHAPES = (ShapeOf, Rank)
"""Operators that do not look at elements."""


class Narrowing:
    """Asks a device that computes integers in fewer bits, and declines what is not shown to fit.

    Whoever runs what it has said yes to sees to the conditions of its offer. Asked about the parts
    of an operation of a model that it was asked about before, it knows the ranges of what they
    read; what these need is added to the conditions for that operation.

    Args:
        name: the device's.
        ask: asks the device.
        capabilities: the device's.
        options: how it is to compile.
        conditions: whether an offer may have conditions on elements of inputs; else what depends
            on those that need not fit is declined.
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
        self._homes: dict[Operand, tuple[_Asked, int]] = {}

    def __call__(self, model: Model) -> ConditionalOffer:
        """The device's offer, without what is not shown to fit."""
        if model not in self._offers:
            self._offers[model] = self._offer(model)
        return self._offers[model]

    def _offer(self, model: Model) -> ConditionalOffer:
        offer = self._ask(model)
        floats = self._options.precision is Precision.FLOAT32
        home = next((self._homes[o] for o in model.outputs.values() if o in self._homes), None)
        if home is None:
            widest = self._assumptions(model)
            search = _Search(model, offer.answers, self._bits, widest, {}, floats=floats)
            search.run(widest.tightest(_TIGHTEST, self._bits.fewer))
            whole = _Asked(model, search.assumed, {}, [])
            places: Sequence[int] = range(len(model.operations))
        else:
            whole, place = home
            assumed, known = whole.assumed, whole.ranges
            search = _Search(model, offer.answers, self._bits, assumed, known, floats=floats)
            search.run(assumed.smaller(self._bits.fewer))
            places = [place] * len(model.operations)
        whole.ranges.update(search.ranges.computed_ranges)
        for source, users in search.needs().items():
            condition = whole.condition(source, search.assumed, self._name)
            if condition is not None:
                operations = frozenset(places[user] for user in users)
                whole.conditions.append(replace(condition, operations=operations))
        for operation, place in zip(model.operations, places, strict=True):
            self._homes.update(dict.fromkeys(operation.outputs, (whole, place)))
        answers = [search.declined.get(i, answer) for i, answer in enumerate(offer.answers)]
        return ConditionalOffer(answers, offer.groups, whole.conditions)

    def _assumptions(self, model: Model) -> Assumptions:
        """The widest conditions: everything that has a place inside the device."""
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
class _Asked:
    """A model that was asked about, and is not a part of another one.

    Attributes:
        model: the model.
        assumed: what its inputs and sizes must keep to.
        ranges: those of its operands, and of those of its operations' parts.
        conditions: all that its operations need, or their parts.
    """

    model: Model
    assumed: Assumptions
    ranges: dict[Operand | str, tuple[Interval | None, frozenset[Source]]]
    conditions: list[Condition]

    def condition(self, source: Source, assumed: Assumptions, device: str) -> Condition | None:
        """An assumption as a condition; `None` if it always holds."""
        if isinstance(source, Dimension):
            most = assumed.most_of_expression(source)
            return SizeRange(source, int(assumed.fit.low), most, device)
        if isinstance(source, str):
            return SizeRange(symbol(source), 0, assumed.most_of(source), device)
        held = assumed.inputs[source]
        if held == of_type(source.type.element_type):
            return None
        name = next(name for name, operand in self.model.inputs.items() if operand is source)
        return InputRange(name, int(held.low), int(held.high), device)


class _Bits:
    """The bits in which a device computes integers.

    Args:
        narrowed: the narrower type of each type that it computes in one.

    Attributes:
        sizes: the range of numbers that are computed from sizes.
        fewer: the most elements of an axis, where more of them would not fit.
    """

    def __init__(self, narrowed: Mapping[ElementType, ElementType]) -> None:
        self.narrowed = narrowed
        self._held: dict[ElementType, Interval] = {}
        for wide, narrow in narrowed.items():
            held = of_type(narrow)
            if held is None or of_type(wide) is None:
                raise DeviceError(f"capabilities: {wide} cannot be narrowed to {narrow}")
            self._held[wide] = held
        self.sizes = min(
            [Interval(-LONGEST - 1, LONGEST), *self._held.values()], key=lambda held: held.high
        )

        self.fewer = min(_FEWER, int(self.sizes.high + 1) // 2)

    def widest(self, operand: Operand) -> Interval | None:
        """All that an operand of integers may be; `None` for one of something else."""
        element_type = operand.type.element_type
        if element_type not in INTEGERS or operand.type.quantization is not None:
            return None
        return self._held.get(element_type) or of_type(element_type)

    def held(self, operand: Operand, bits: int | None) -> Interval | None:
        """The range that an operand must be in; `None` if all that its type holds will do.

        Args:
            operand: what the device computes on, or makes.
            bits: those of the operation, if the device says how many.
        """
        widest = self.widest(operand)
        if widest is None or bits is None or widest.high < 2**bits:
            return self._held.get(operand.type.element_type)
        return widest.within(-(2**bits), 2**bits)

    def refusal(
        self, operation: Operation, slot: str, operand: Operand, bits: int | None, range_: object
    ) -> Support:
        """The answer about an operation that is not shown to fit."""
        own = operand.type.element_type
        inside = f"{bits} bits" if bits is not None else self.narrowed[own]
        detail = f"{own} is computed in {inside}, which may not hold its values"
        if isinstance(range_, Interval):
            detail = f"{own} is computed in {inside}, which does not hold values {range_}"
        return Support.no(operation, slot, detail, Rule.RANGE)


class _Search:
    """The search for the widest assumptions under which as much as possible fits.

    Args:
        model: the model, or parts of one that has been searched before.
        answers: the device's own about it.
        bits: what its integers must fit in.
        assumed: what may be assumed at most.
        known: the ranges of what such parts read.
        floats: whether floats can be followed.

    Attributes:
        assumed: what must be assumed.
        ranges: the ranges under that.
        declined: the answers about operations that do not fit under any assumption.
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
        self._watched = self._watch()
        self.declined: dict[int, Support] = {}
        self._assume(assumed)

    def run(self, tightest: Assumptions) -> None:
        """Assume as little as it takes; decline what does not fit under the tightest."""
        widest = self.assumed
        if self._mismatch() is None:
            return
        self._assume(tightest)
        for index, slot, operand in self._misfits():
            operation, bits = self._model.operations[index], self._answers[index].bits
            range_ = self.ranges.of(operand)
            self.declined[index] = self._bits.refusal(operation, slot, operand, bits, range_)
        self._assume(widest)
        while (mismatch := self._mismatch()) is not None:
            self._assume(self.assumed.tightened(self.ranges.sources(mismatch[2]), self._bits.fewer))

    def needs(self) -> Mapping[Source, set[int]]:
        """The assumptions, with the indices of the operations that rely on them.

        Among these are such as the device declines, which it may run as simpler ones.
        """
        needed: dict[Source, set[int]] = {}
        for index, watched in self._watched.items():
            if index not in self.declined:
                for source in self.ranges.sources(*(operand for _, operand, _ in watched)):
                    needed.setdefault(source, set()).add(index)
        return needed

    def _assume(self, assumed: Assumptions) -> None:
        self.assumed = assumed
        self.ranges = Ranges(assumed, self._known, floats=self._floats)
        for operation in self._model.operations if self._watched else ():
            self.ranges.follow(operation)

    def _mismatch(self) -> tuple[int, str, Operand] | None:
        """The first operation that does not fit, with the slot and operand at fault."""
        return next(self._misfits(), None)

    def _misfits(self) -> Iterator[tuple[int, str, Operand]]:
        """The operations that do not fit, each with the first slot and operand at fault."""
        for index, watched in self._watched.items():
            if self._answers[index] and index not in self.declined:
                misfits = (
                    (index, slot, operand)
                    for slot, operand, held in watched
                    if not self.ranges.fits(operand, held)
                )
                yield from islice(misfits, 1)

    def _watch(self) -> dict[int, list[tuple[str, Operand, Interval]]]:
        """The operands of each operation that must be in a range, with their slots."""
        watched: dict[int, list[tuple[str, Operand, Interval]]] = {}
        if not self._bits.narrowed and all(answer.bits is None for answer in self._answers):
            return watched
        for index, answer in enumerate(self._answers):
            for slot, operand in self._operands(index):
                held = self._bits.held(operand, answer.bits)
                if held is not None:
                    watched.setdefault(index, []).append((slot, operand, held))
        return watched

    def _operands(self, index: int) -> Iterator[tuple[str, Operand]]:
        """All that an operation reads but constant parameters, and what it makes, with slots."""
        operation = self._model.operations[index]
        slots = operation.slots if isinstance(operation, Operator) else ()
        parameters = {slot.name for slot in slots if slot.parameter}
        for slot, operand in operation.named_inputs():
            is_given = operand.is_constant and slot in parameters
            if not is_given and not isinstance(operation, _OF_SHAPES):
                yield slot, operand
        yield from (("output", output) for output in operation.outputs)
        for body in operation.bodies:
            for inner in body.operations:
                yield from (("body", operand) for _, operand in inner.named_inputs())
                yield from (("body", operand) for operand in inner.outputs)


def narrowing(device: Device, options: Options) -> Narrowing:
    """The way to ask a device directly."""
    return Narrowing(
        device.name, lambda model: device.query(model, options), device.capabilities(), options
    )


def conditions_of(device: Device, model: Model, options: Options) -> Sequence[Condition]:
    """The conditions under which a device runs a model, all of which it takes.

    Raises:
        DeviceError: there are none under which all of it fits.
    """
    offer = narrowing(device, options)(model)
    for answer in offer.answers:
        if not answer:
            raise DeviceError(f"{device.name}: {answer.reason}")
    return offer.conditions
