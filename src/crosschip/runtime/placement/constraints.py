"""The caller's constraints on a placement, and models in mixed precision."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING

from crosschip.hal import Rule, Support
from crosschip.ir import Model, Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.runtime.placement.placement import Placement


@dataclass(frozen=True, slots=True)
class AllowedDevices:
    """The devices that may run an operation, by a constraint.

    Attributes:
        devices: their names.
        why: the constraint, in words.
    """

    devices: tuple[str, ...]
    why: str

    def refusal(self, operation: Operation) -> Support:
        """Return the refusal that replaces the answers of all other devices."""
        return Support.no(operation, "", self.why, Rule.CALLER)


@dataclass(frozen=True, slots=True)
class Constraints:
    """The caller's constraints on a placement in addition to the order of the devices.

    Attributes:
        allowed_devices: the allowed devices of operations; those in bodies of control flow have
            their own entries.
        min_segment: the fewest operations of a segment; smaller segments are merged into others if
            that gives fewer segments.
        max_segments: the maximum number of segments; `None` for any number.
        strict: whether it is an error if an operation does not run on its first allowed device.
        memory: the maximum number of bytes of weights and tensors between segments, by device.
    """

    allowed_devices: Mapping[Operation, AllowedDevices] = field(default_factory=dict)
    min_segment: int = 1
    max_segments: int | None = None
    strict: bool = False
    memory: Mapping[str, int] = field(default_factory=dict)

    @property
    def joins(self) -> bool:
        """Return whether segments are merged."""
        return self.min_segment > 1 or self.max_segments is not None

    @property
    def bind(self) -> bool:
        """Return whether a constraint restricts the devices of operations."""
        return self.strict or bool(self.allowed_devices)

    def within_bodies(self) -> Constraints:
        """Return the constraints that also apply to bodies of control flow."""
        return Constraints(self.allowed_devices)


_OTHERS = "computes in float32 what mixed_precision lists, and nothing else"


@dataclass(frozen=True, slots=True)
class MixedPrecisionModel:
    """A model in which the listed operators compute in float32.

    Attributes:
        model: the model.
        operations: the names of the listed operations.
        in_float32: the listed operations that devices would compute in another precision, with the
            line that lists each; including those in bodies of control flow.
    """

    model: Model
    operations: tuple[str, ...] = ()
    in_float32: Mapping[Operation, str] = field(default_factory=dict)

    def constraints(
        self, constraints: Constraints, devices: Collection[str], exact: Mapping[str, str]
    ) -> Constraints:
        """Return the caller's constraints together with those of the configuration.

        Operations kept in float32 run on the float32 variant of their device. Other operations do
        not run on variants that exist only for the float32 ones.

        Args:
            constraints: the caller's constraints.
            devices: the devices that the caller named, in the order of preference.
            exact: the float32 variant of each device that computes in another precision.
        """
        if not self.in_float32:
            return constraints
        allowed_devices: dict[Operation, AllowedDevices] = {}
        for operation in walk_operations(self.model):
            allowed = constraints.allowed_devices.get(
                operation, AllowedDevices(tuple(devices), _OTHERS)
            )
            line = self.in_float32.get(operation)
            if line is not None:
                names = dict.fromkeys(exact.get(name, name) for name in allowed.devices)
                reasons = [allowed.why] if operation in constraints.allowed_devices else []
                allowed = AllowedDevices(
                    tuple(names), "; ".join([*reasons, f"kept in float32 by {line}"])
                )
            allowed_devices[operation] = allowed
        return replace(constraints, allowed_devices=allowed_devices)


def unmet_constraint(placement: Placement, constraints: Constraints) -> str:
    """Return the constraint that is not met, in words; empty if all are met."""
    most = constraints.max_segments
    if most is not None and len(placement.segments) > most:
        return (
            f"does not go in {most} segments; the fewest found are {len(placement.segments)}, "
            f"since no device takes what lies between ({placement.summary()})"
        )
    if not constraints.strict or not placement.fallbacks:
        return ""
    lines = [
        f"  {decision.name} ({decision.type}) goes to {decision.device}: "
        + "; ".join(f"{device}: {text}" for device, text in decision.reasons.items())
        for decision in placement.fallbacks[:_SHOWN]
    ]
    if len(placement.fallbacks) > _SHOWN:
        lines.append(f"  and {len(placement.fallbacks) - _SHOWN} more")
    return (
        f"{len(placement.fallbacks)} of its operations are not placed on the first device, as "
        f"`strict` requires:\n" + "\n".join(lines)
    )


_SHOWN = 10
"""The maximum number of fallbacks that an error lists."""
