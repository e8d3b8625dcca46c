"""Constraints of a caller on a placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from crosschip.hal import Rule, Support
from crosschip.ir import Operation
from crosschip.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Home:
    """The devices that alone may run an operation.

    Attributes:
        devices: their names.
        why: the constraint that says so, for people.
    """

    devices: tuple[str, ...]
    why: str

    def refusal(self, operation: Operation) -> Support:
        """The answer that takes the place of that of a device that may not."""
        return Support.no(operation, "", self.why, Rule.CALLER)


@dataclass(frozen=True, slots=True)
class Constraints:
    """Constraints of a caller on a placement, besides the order of the devices.

    Attributes:
        homes: the operations that only some devices may run; those in bodies of control flow are
            listed by themselves.
        min_segment: the fewest operations that are worth a segment of their own; smaller ones join
            another device's where that makes fewer segments.
        max_segments: how many segments there may be at most; `None` for any number.
        strict: whether it is an error if an operation does not go to the first device that may run
            it.
    """

    homes: Mapping[Operation, Home] = field(default_factory=dict)
    min_segment: int = 1
    max_segments: int | None = None
    strict: bool = False

    @property
    def joins(self) -> bool:
        """Tell whether segments are joined."""
        return self.min_segment > 1 or self.max_segments is not None

    @property
    def bind(self) -> bool:
        """Tell whether they say where operations run."""
        return self.strict or bool(self.homes)

    def within_bodies(self) -> Constraints:
        """The constraints that hold in a body of control flow too."""
        return Constraints(self.homes)
