"""Asking devices which operations of a model they run, and as what.

A device is asked about the whole model. What it declines may decompose: then it is asked about the
parts, and runs them in place of the operation if it runs all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crosschip.hal import YES, Offer, Options, Rule, Sizes, Sizing, Support
from crosschip.hal.conditions import Condition, ConditionalOffer
from crosschip.ir import Model, Operation
from crosschip.ir.budget import spend
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.decomposition import Ask, decompose
from crosschip.lowering.legalization import Screen
from crosschip.lowering.narrowing import Narrowing
from crosschip.ops import Operator
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.sampling import Sampling
from crosschip.runtime.shapes.policy import is_fixed_for


@dataclass(frozen=True, slots=True)
class Verdict:
    """A device's verdict on an operation.

    Attributes:
        support: the device's answer about the operation as it stands.
        simpler: the operations of its decomposition, if the device runs those in its place.
    """

    support: Support
    simpler: Sequence[Operation] = ()

    def __bool__(self) -> bool:
        """Tell whether the device runs the operation, in whatever way."""
        return self.support.supported or bool(self.simpler)

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.simpler:
            types = ", ".join(part.type for part in self.simpler)
            return f"decomposed into {types}, since {self.support.reason}"
        return self.support.reason or "supported"


class Answers:
    """A device's answers about the operations of a model, by their indices.

    Attributes:
        supports: the device's answer about each operation as it stands; `None` where it was not in
            question.
        simpler: the decompositions that the device runs in place of operations that it declines.
        groups: operations that it runs together or not at all, with the reason.
    """

    __slots__ = ("groups", "simpler", "supports")

    def __init__(self, supports: list[Support | None]) -> None:
        self.supports = supports
        self.simpler: dict[int, Sequence[Operation]] = {}
        self.groups: list[tuple[str, Sequence[int]]] = []

    def takes(self, index: int) -> bool:
        """Tell whether the device runs an operation, in whatever way."""
        support = self.supports[index]
        return support is not None and (support.supported or index in self.simpler)

    def verdict(self, index: int) -> Verdict | None:
        """The verdict on an operation; `None` if that was not in question."""
        support = self.supports[index]
        return None if support is None else Verdict(support, self.simpler.get(index, ()))


class Inquiry:
    """Questions to devices about one model; none is asked the same twice."""

    def __init__(self, model: Model, devices: Mapping[str, Ask]) -> None:
        """Prepare to ask.

        Args:
            model: what to ask about.
            devices: how to ask each device, by name.
        """
        self.model = model
        self.devices = devices
        self._offers: dict[str, Offer] = {}
        self._simpler: dict[tuple[str, int], Sequence[Operation]] = {}
        self._used_names: set[str] = set()

    def answers(
        self, device: str, wanted: Sequence[int], overruled: Mapping[int, Support]
    ) -> Answers:
        """The answers of a device about operations of the model.

        Args:
            device: its name.
            wanted: the indices of the operations in question.
            overruled: answers that take the place of the device's own.
        """
        offer = self._offer(device)
        operations = self.model.operations
        if len(wanted) == len(operations):
            answers = Answers(list(offer.answers))
        else:
            answers = Answers([None] * len(operations))
            for index in wanted:
                answers.supports[index] = offer.answers[index]
        for index, answer in overruled.items():
            if answers.supports[index] is not None:
                answers.supports[index] = answer
        for index in wanted:
            support = answers.supports[index]
            if support is not YES and support is not None and not support.supported:
                simpler = self._instead(device, index, support)
                if simpler:
                    answers.simpler[index] = simpler
        self._form_groups(answers, offer)
        return answers

    def conditions(self, assigned_devices: Sequence[str | None]) -> Sequence[Condition]:
        """What must hold of inputs in a run, by the devices' offers.

        Args:
            assigned_devices: the device of each operation.
        """
        return [
            condition
            for device, offer in self._offers.items()
            if isinstance(offer, ConditionalOffer)
            for condition in offer.conditions
            if any(assigned_devices[index] == device for index in condition.operations)
        ]

    def _offer(self, device: str) -> Offer:
        spend()
        if device not in self._offers:
            self._offers[device] = self.devices[device](self.model)
        return self._offers[device]

    def _instead(self, device: str, index: int, answer: Support) -> Sequence[Operation]:
        """The decomposition of an operation that a device declines, if it runs that."""
        operation = self.model.operations[index]
        if answer.rule in _FINAL or not isinstance(operation, Operator):
            return ()
        key = device, index
        if key not in self._simpler:
            spend()
            if not self._used_names:
                self._used_names = {operation.name for operation in self.model.operations}
            ask = self.devices[device]
            self._simpler[key] = decompose(operation, ask, self._used_names) or ()
        return self._simpler[key]

    def _form_groups(self, answers: Answers, offer: Offer) -> None:
        """Keep the groups that the device may get whole; decline what is left of the others."""
        for group in offer.groups:
            supports = [answers.supports[index] for index in group.operations]
            if all(supports):
                answers.groups.append((group.why, group.operations))
                continue
            for index, support in zip(group.operations, supports, strict=True):
                if support:
                    operation = self.model.operations[index]
                    answers.supports[index] = broken_group(operation, group.why)


_FINAL = (Rule.FAILURE, Rule.CALLER, Rule.DEFINITION)
"""The rules for which a decomposition is no way around."""


def asking(device: GuardedDevice, options: Options, *, conditions: bool = True) -> Ask:
    """The way to ask a device; what does not fit its capabilities is declined without it.

    Args:
        device: the device.
        options: how it is to compile.
        conditions: whether its offers may hold for some inputs only.
    """
    capabilities, options = device.capabilities, device.effective_options(options)
    ask = _asking(device, options)
    return Narrowing(device.name, ask, capabilities, options, conditions=conditions)


def _asking(device: GuardedDevice, options: Options) -> Ask:
    """The way to ask a device about a model, whichever sizes it leaves open."""
    capabilities = device.capabilities
    ask = _screened(device, options)
    takes_any = capabilities.open_ranks and capabilities.open_axes is None
    if capabilities.sizing is Sizing.FREE and takes_any:
        return ask
    sampling = Sampling(
        _screened(device, replace(options, sizes=Sizes())),
        options.sizes,
        data_dependent=capabilities.data_dependent_sizes,
    )

    def ask_in_its_way(model: Model) -> Offer:
        fixed = is_fixed_for(capabilities, model, options.sizes)
        return sampling(model) if fixed else ask(model)

    return ask_in_its_way


def _screened(device: GuardedDevice, options: Options) -> Ask:
    """The way to ask a device about a model whose sizes it compiles."""
    screen = Screen(device.capabilities, options)

    def ask(model: Model) -> Offer:
        offer = device.query(model, options)
        packaged = [o for o in model.operations if isinstance(o, PackagedOperator)]
        if not screen.needed and not packaged:
            return offer
        refused = {id(operation): _by_definition(operation, device.name) for operation in packaged}
        answers = []
        for operation, answer in zip(model.operations, offer.answers, strict=True):
            declined = refused.get(id(operation))
            if declined is None:
                declined = screen(operation)
            answers.append(answer if declined is None else declined)
        return Offer(answers, offer.groups)

    return ask


def _by_definition(operation: PackagedOperator, device: str) -> Support | None:
    """The answer no, where the definition of a package's operator keeps it off a device."""
    broken = operation.restriction(device)
    return None if broken is None else Support.no(operation, *broken, Rule.DEFINITION)


def broken_group(operation: Operation, why: str) -> Support:
    """The answer about an operation whose group the device does not get as a whole."""
    detail = f"only together with others that go elsewhere ({why})" if why else "only together"
    return Support.no(operation, "", detail, Rule.GROUP)
