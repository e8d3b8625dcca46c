"""The choice of a device for each operation of a model, from the devices' answers.

The first device in the order of preference that supports an operation is chosen. Another policy,
such as measured cost, would replace `choose` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.hal import Support
from crosschip.ir import Operation
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.placement.asking import Answers, Inquiry
from crosschip.runtime.placement.constraints import Home

Refusals = dict[str, dict[str, Support]]
"""Answers that take the place of a device's own, by device and operation name."""

Overruled = dict[str, dict[int, Support]]
"""Answers that take the place of a device's own, by device and the operation's index."""


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
    inquiry: Inquiry, order: Sequence[str], overruled: Overruled, *, ask_all: bool
) -> Assignment:
    """Choose the first device in an order that supports each operation, with few queries.

    Args:
        inquiry: the queries to the devices.
        order: the devices in the order of preference.
        overruled: answers that replace those of the devices.
        ask_all: whether to query every device about every operation, for their reasons.
    """
    all_indices = range(len(inquiry.model.operations))
    assigned_devices: list[str | None] = [None] * len(all_indices)
    answers_by_device: dict[str, Answers] = {}
    wanted: Sequence[int] = all_indices
    for name in order:
        if answers_by_device and not wanted and not ask_all:
            break
        answers = answers_by_device[name] = inquiry.answers(
            name, all_indices if ask_all else wanted, overruled[name]
        )
        left = []
        for index in wanted:
            support = answers.supports[index]
            if support is not None and (support.supported or index in answers.simpler):
                assigned_devices[index] = name
            else:
                left.append(index)
        wanted = left
    return Assignment(answers_by_device, assigned_devices)


def overruled_by(
    operations: Sequence[Operation],
    devices: Sequence[str],
    refusals: Refusals,
    homes: Mapping[Operation, Home],
) -> Overruled:
    """Return answers that replace those of the devices: failures and constraints.

    Control flow is declined for a device that may not run part of it.
    """
    overruled: Overruled = {}
    for device in devices:
        known = refusals.get(device, {})
        overruled[device] = (
            {i: known[o.name] for i, o in enumerate(operations) if o.name in known} if known else {}
        )
    if not homes:
        return overruled
    for index, operation in enumerate(operations):
        for home in _homes(operation, homes):
            for device in devices:
                if device not in home.devices:
                    overruled[device][index] = home.refusal(operation)
    return overruled


def _homes(operation: Operation, homes: Mapping[Operation, Home]) -> list[Home]:
    """Return the allowed devices of an operation and of those in its bodies."""
    all_homes = [homes[operation]] if operation in homes else []
    for body in operation.bodies:
        for inner in body.operations:
            all_homes += _homes(inner, homes)
    return all_homes
