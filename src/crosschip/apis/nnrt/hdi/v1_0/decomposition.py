"""Decomposition of a model for a device: operations that it declines are split."""

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
class DecomposedModel:
    """A model, decomposed for a device.

    Attributes:
        model: the model with decomposed operations; the original model if operations are
            refused.
        refused: the reason for each refused operation, by its index in the original model.
    """

    model: Model
    refused: Mapping[int, str]


def decompose_model(model: Model, device: Device, options: Options) -> DecomposedModel:
    """Decompose the operations that a device declines, and list those that remain refused.

    Raises:
        DeviceError: the device fails to answer.
    """
    ask = _query(device, options)
    offer = ask(model)
    refused: dict[int, str] = {}
    replacements: list[Sequence[Operation]] = []
    used_names = {operation.name for operation in model.operations}
    for index, (operation, support) in enumerate(zip(model.operations, offer.answers, strict=True)):
        replacement: Sequence[Operation] | None = (operation,)
        if not support:
            replacement = None
            if isinstance(operation, Operator) and support.rule not in _FINAL:
                replacement = decompose(operation, ask, used_names)
        if replacement is None:
            refused[index] = support.reason
        replacements.append(replacement or ())
    _refuse_broken_groups(offer, refused)
    _refuse_other_dialects(offer, refused)
    operations = [operation_ for replacement in replacements for operation_ in replacement]
    if refused:
        return DecomposedModel(model, refused)
    return DecomposedModel(Model(model.name, model.inputs, operations, model.outputs), refused)


_FINAL = (Rule.FAILURE, Rule.CALLER)
"""The rules that a decomposition cannot satisfy either."""


def _query(device: Device, options: Options) -> Ask:
    capabilities = device.capabilities()
    screen = Screen(capabilities, options)

    def ask(model: Model) -> Offer:
        offer = device.query(model, options)
        pairs = zip(map(screen, model.operations), offer.answers, strict=True)
        answers: list[Support] = [
            support if refusal is None else refusal for refusal, support in pairs
        ]
        return Offer(answers, offer.groups)

    return Narrowing(device.name, ask, capabilities, options)


def _refuse_broken_groups(offer: Offer, refused: dict[int, str]) -> None:
    """Refuse operations that are supported only together with a refused one."""
    for group in offer.groups:
        if any(index in refused for index in group.operations):
            for index in group.operations:
                refused.setdefault(index, f"only together with others ({group.why})")


def _refuse_other_dialects(offer: Offer, refused: dict[int, str]) -> None:
    """Refuse operations of another dialect than the first: the interface prepares one model."""
    first = next((answer.dialect for answer in offer.answers), "")
    for index, answer in enumerate(offer.answers):
        if answer.dialect != first:
            refused.setdefault(index, f"is compiled apart from the rest ({answer.dialect})")
