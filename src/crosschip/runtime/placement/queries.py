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
    """The verdict of a device on an operation.

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
        supports: the answer about each operation itself; `None` if the device was not queried about
            it.
        simpler: the decompositions that the device runs instead of operations that it declines.
        groups: the groups of operations that the device runs only as a whole, with the reason.
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


class ModelQueries:
    """The queries to devices about one model, and their answers, which are kept."""

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
        self, device: str, indices: Sequence[int], overruling: Mapping[int, Support]
    ) -> Answers:
        """Return the answers of a device about operations of the model.

        Args:
            device: the name of the device.
            indices: the indices of the operations.
            overruling: answers that replace those of the device.
        """
        offer = self._offer(device)
        operations = self.model.operations
        if len(indices) == len(operations):
            answers = Answers(list(offer.answers))
        else:
            answers = Answers([None] * len(operations))
            for index in indices:
                answers.supports[index] = offer.answers[index]
        for index, answer in overruling.items():
            if answers.supports[index] is not None:
                answers.supports[index] = answer
        for index in indices:
            support = answers.supports[index]
            if support is not YES and support is not None and not support.supported:
                simpler = self._supported_decomposition(device, index, support)
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

    def _supported_decomposition(
        self, device: str, index: int, answer: Support
    ) -> Sequence[Operation]:
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
        """Keep the groups that are supported as a whole; decline the members of the others."""
        for group in offer.groups:
            supports = [answers.supports[index] for index in group.operations]
            if all(supports):
                answers.groups.append((group.why, group.operations))
                continue
            for index, support in zip(group.operations, supports, strict=True):
                if support:
                    operation = self.model.operations[index]
                    answers.supports[index] = broken_group_refusal(operation, group.why)


_FINAL = (Rule.FAILURE, Rule.CALLER, Rule.DEFINITION)
"""The rules of refusals for which no decomposition is tried."""


def device_query(device: GuardedDevice, options: Options, *, conditions: bool = True) -> Ask:
    """Return the function that queries a device; operations outside its capabilities are declined.

    Args:
        device: the device.
        options: the compile options.
        conditions: whether the device's offers may hold for some inputs only.
    """
    capabilities, options = device.capabilities, device.effective_options(options)
    ask = _query_by_shapes(device, options)
    return Narrowing(device.name, ask, capabilities, options, conditions=conditions)


def _query_by_shapes(device: GuardedDevice, options: Options) -> Ask:
    """Return a query that uses typical sizes where the device needs static ones."""
    capabilities = device.capabilities
    ask = screened_query(device, options)
    takes_any = capabilities.open_ranks and capabilities.open_axes is None
    if capabilities.sizing is Sizing.FREE and takes_any:
        return ask
    sampling = Sampling(
        screened_query(device, replace(options, sizes=Sizes())),
        options.sizes,
        data_dependent=capabilities.data_dependent_sizes,
    )

    def query(model: Model) -> Offer:
        fixed = is_fixed_for(capabilities, model, options.sizes)
        return sampling(model) if fixed else ask(model)

    return query


def screened_query(device: GuardedDevice, options: Options) -> Ask:
    """Return a query that declines operations outside the device's declared capabilities."""
    screen = Screen(device.capabilities, options)

    def ask(model: Model) -> Offer:
        offer = device.query(model, options)
        packaged = [o for o in model.operations if isinstance(o, PackagedOperator)]
        if not screen.needed and not packaged:
            return offer
        refused = {id(o): _definition_refusal(o, device.name) for o in packaged}
        answers = []
        for operation, answer in zip(model.operations, offer.answers, strict=True):
            declined = refused.get(id(operation))
            if declined is None:
                declined = screen(operation)
            answers.append(answer if declined is None else declined)
        return Offer(answers, offer.groups)

    return ask


def _definition_refusal(operation: PackagedOperator, device: str) -> Support | None:
    """Return a refusal if the definition of a custom operator excludes the device."""
    broken = operation.restriction(device)
    return None if broken is None else Support.no(operation, *broken, Rule.DEFINITION)


def broken_group_refusal(operation: Operation, why: str) -> Support:
    """Return the refusal of an operation whose group the device does not run as a whole."""
    detail = f"only with others that other devices run ({why})" if why else "only together"
    return Support.no(operation, "", detail, Rule.GROUP)
