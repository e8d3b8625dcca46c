"""Queries to devices: which operations of a model they support, as they are or decomposed.

A device is queried about the whole model. If it declines an operation that can be decomposed, it is
queried about the decomposition, and runs that instead if it supports all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crosschip.hal import YES, Offer, Options, Rule, Sizes, Sizing, Support
from crosschip.hal.conditions import Condition, ConditionalOffer
from crosschip.ir import Model, Operation
from crosschip.ir.budget import spend
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.capability_check import Screen
from crosschip.lowering.decomposition import Ask, decompose
from crosschip.lowering.narrowing import Narrowing
from crosschip.ops import Operator
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.sampling import Sampling
from crosschip.runtime.shapes.policy import is_fixed_for


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a device does with an operation.

    Attributes:
        support: the device's answer about the operation itself.
        simpler: the operations of its decomposition, if the device runs those instead.
    """

    support: Support
    simpler: Sequence[Operation] = ()

    def __bool__(self) -> bool:
        """Return whether the device runs the operation, itself or decomposed."""
        return self.support.supported or bool(self.simpler)

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.simpler:
            types = ", ".join(part.type for part in self.simpler)
            return f"decomposed into {types}, since {self.support.reason}"
        return self.support.reason or "supported"


class Answers:
    """A device's answers about the operations of a model, by index.

    Attributes:
        supports: the answer about each operation itself; `None` if the device was not queried
            about it.
        simpler: the decompositions that the device runs instead of operations that it declines.
        groups: the groups of operations that it runs as a whole or not at all, with the reason.
    """

    __slots__ = ("groups", "simpler", "supports")

    def __init__(self, supports: list[Support | None]) -> None:
        self.supports = supports
        self.simpler: dict[int, Sequence[Operation]] = {}
        self.groups: list[tuple[str, Sequence[int]]] = []

    def takes(self, index: int) -> bool:
        """Return whether the device runs an operation, itself or decomposed."""
        support = self.supports[index]
        return support is not None and (support.supported or index in self.simpler)

    def verdict(self, index: int) -> Verdict | None:
        """Return the verdict on an operation; `None` if the device was not queried about it."""
        support = self.supports[index]
        return None if support is None else Verdict(support, self.simpler.get(index, ()))


class Inquiry:
    """The queries to devices about one model; no query is repeated."""

    def __init__(self, model: Model, devices: Mapping[str, Ask]) -> None:
        """Prepare the queries.

        Args:
            model: the model.
            devices: the function that queries each device, by name.
        """
        self.model = model
        self.devices = devices
        self._offers: dict[str, Offer] = {}
        self._simpler: dict[tuple[str, int], Sequence[Operation]] = {}
        self._used_names: set[str] = set()

    def answers(
        self, device: str, wanted: Sequence[int], overruled: Mapping[int, Support]
    ) -> Answers:
        """Return the answers of a device about operations of the model.

        Args:
            device: the name of the device.
            wanted: the indices of the operations.
            overruled: answers that replace those of the device.
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
        """Return the conditions that the devices' offers put on the inputs of a run.

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
        """Return the decomposition of an operation that a device declines, if it supports that."""
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
        """Keep the groups that the device may run as a whole; decline the members of the others."""
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
    """Return the function that queries a device; operations outside its capabilities are declined.

    Args:
        device: the device.
        options: the compile options.
        conditions: whether its offers may be limited to some inputs.
    """
    capabilities, options = device.capabilities, device.effective_options(options)
    ask = _asking(device, options)
    return Narrowing(device.name, ask, capabilities, options, conditions=conditions)


def _asking(device: GuardedDevice, options: Options) -> Ask:
    """Return the function that queries a device about a model with any dynamic sizes."""
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
    """Return the function that queries a device about a model whose sizes it can compile."""
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
    """Return a refusal if the definition of a custom operator excludes the device."""
    broken = operation.restriction(device)
    return None if broken is None else Support.no(operation, *broken, Rule.DEFINITION)


def broken_group(operation: Operation, why: str) -> Support:
    """Return the refusal of an operation whose group the device does not run as a whole."""
    detail = f"only together with others that go elsewhere ({why})" if why else "only together"
    return Support.no(operation, "", detail, Rule.GROUP)
