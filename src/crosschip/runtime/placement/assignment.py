"""The choice of a device for each operation of a model, from the devices' answers.

The first device in the order of preference that supports an operation is chosen, unless another
placement is requested, such as the one of least measured cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.hal import Support
from crosschip.ir import Operation
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.placement.constraints import AllowedDevices
from crosschip.runtime.placement.queries import Answers, ModelQueries

Refusals = dict[str, dict[str, Support]]
"""Answers that replace a device's, by device and operation name."""

OverrulingAnswers = dict[str, dict[int, Support]]
"""Answers that replace a device's, by device and the operation's index."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The device of each operation.

    Attributes:
        answers: the answers of the queried devices, in the order of preference.
        devices: the device of each operation; `None` if no device supports it.
    """

    answers: Mapping[str, Answers]
    devices: list[str | None]


def choose(
    queries: ModelQueries,
    order: Sequence[str],
    overruling: OverrulingAnswers,
    requested: Sequence[str | None] = (),
    *,
    ask_all: bool,
) -> Assignment:
    """Choose the first device in an order that supports each operation, with few queries.

    Args:
        queries: the queries to the devices.
        order: the devices in the order of preference.
        overruling: answers that replace those of the devices.
        requested: a device for each operation, which runs it if it supports it; empty for none.
        ask_all: whether to query every device about every operation, for their reasons.
    """
    all_indices = range(len(queries.model.operations))
    assigned_devices: list[str | None] = [None] * len(all_indices)
    answers_by_device: dict[str, Answers] = {}
    unassigned: Sequence[int] = all_indices
    for name in order:
        if answers_by_device and not unassigned and not (ask_all or requested):
            break
        answers = answers_by_device[name] = queries.answers(
            name, all_indices if ask_all or requested else unassigned, overruling[name]
        )
        declined = []
        for index in unassigned:
            support = answers.supports[index]
            if support is not None and (support.supported or index in answers.simpler):
                assigned_devices[index] = name
            else:
                declined.append(index)
        unassigned = declined
    for index, device in enumerate(requested):
        if device in answers_by_device and answers_by_device[device].takes(index):
            assigned_devices[index] = device
    return Assignment(answers_by_device, assigned_devices)


def overruling_answers(
    operations: Sequence[Operation],
    devices: Sequence[str],
    refusals: Refusals,
    allowed_devices: Mapping[Operation, AllowedDevices],
) -> OverrulingAnswers:
    """Return answers that replace those of the devices: failures and constraints.

    Control flow is declined for a device that may not run part of it.
    """
    overruling: OverrulingAnswers = {}
    for device in devices:
        refused = refusals.get(device, {})
        overruling[device] = (
            {i: refused[o.name] for i, o in enumerate(operations) if o.name in refused}
            if refused
            else {}
        )
    if not allowed_devices:
        return overruling
    for index, operation in enumerate(operations):
        for allowed in _constraints_of(operation, allowed_devices):
            for device in devices:
                if device not in allowed.devices:
                    overruling[device][index] = allowed.refusal(operation)
    return overruling


def _constraints_of(
    operation: Operation, allowed_devices: Mapping[Operation, AllowedDevices]
) -> list[AllowedDevices]:
    """Return the constraints on an operation and on those in its bodies."""
    constraints = [allowed_devices[operation]] if operation in allowed_devices else []
    for body in operation.bodies:
        for inner in body.operations:
            constraints += _constraints_of(inner, allowed_devices)
    return constraints
