"""Models fitted to a device: what it declines is split into what it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosschip.hal import Device, Offer, Options, Rule, Support
from crosschip.ir import Model, Operation
from crosschip.lowering.decomposition import Ask, decompose
from crosschip.lowering.legalization import Screen
from crosschip.lowering.narrowing import Narrowing
from crosschip.ops import Operator


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model as a device runs it.

    Attributes:
        model: the model, some operations of which are split.
        refused: for each operation of the first model that the device does not run, by its place,
            the reason.
    """

    model: Model
    refused: Mapping[int, str]


def fitted(model: Model, device: Device, options: Options) -> Fitted:
    """Fit a model to a device.

    Raises:
        DeviceError: the device fails to answer.
    """
    ask = _asking(device, options)
    offer = ask(model)
    refused: dict[int, str] = {}
    parts: list[Sequence[Operation]] = []
    used_names = {operation.name for operation in model.operations}
    for place, (operation, answer) in enumerate(zip(model.operations, offer.answers, strict=True)):
        simpler: Sequence[Operation] | None = (operation,)
        if not answer:
            simpler = None
            if isinstance(operation, Operator) and answer.rule not in _FINAL:
                simpler = decompose(operation, ask, used_names)
        if simpler is None:
            refused[place] = answer.reason
        parts.append(simpler or ())
    _break_groups(offer, refused)
    _keep_one_dialect(offer, refused)
    operations = [part for simpler in parts for part in simpler]
    if refused:
        return Fitted(model, refused)
    return Fitted(Model(model.name, model.inputs, operations, model.outputs), refused)


_FINAL = (Rule.FAILURE, Rule.CALLER)
"""The rules for which a decomposition is no way around."""


def _asking(device: Device, options: Options) -> Ask:
    capabilities = device.capabilities()
    screen = Screen(capabilities, options)

    def ask(model: Model) -> Offer:
        offer = device.query(model, options)
        pairs = zip(map(screen, model.operations), offer.answers, strict=True)
        answers: list[Support] = [own if no is None else no for no, own in pairs]
        return Offer(answers, offer.groups)

    return Narrowing(device.name, ask, capabilities, options)


def _break_groups(offer: Offer, refused: dict[int, str]) -> None:
    """Refuse what runs only together with what is refused."""
    for group in offer.groups:
        if any(place in refused for place in group.operations):
            for place in group.operations:
                refused.setdefault(place, f"only together with others ({group.why})")


def _keep_one_dialect(offer: Offer, refused: dict[int, str]) -> None:
    """Refuse what is compiled apart from the first: the interface has one model for all."""
    first = next((answer.dialect for answer in offer.answers), "")
    for place, answer in enumerate(offer.answers):
        if answer.dialect != first:
            refused.setdefault(place, f"is compiled apart from the rest ({answer.dialect})")
