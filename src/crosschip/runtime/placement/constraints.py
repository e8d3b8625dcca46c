"""The caller's constraints on a placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from crosschip.hal import Rule, Support
from crosschip.ir import Operation
from crosschip.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Home:
    """The only devices that may run an operation.

    Attributes:
        devices: their names.
        why: the constraint, in words.
    """

    devices: tuple[str, ...]
    why: str

    def refusal(self, operation: Operation) -> Support:
        """Return the refusal that replaces the answer of any other device."""
        return Support.no(operation, "", self.why, Rule.CALLER)


@dataclass(frozen=True, slots=True)
class Constraints:
    """The caller's constraints on a placement, besides the order of the devices.

    Attributes:
        homes: the allowed devices of operations; those in bodies of control flow have their own
            entries.
        min_segment: the fewest operations of a segment; smaller segments are merged into others
            if that gives fewer segments.
        max_segments: the most segments; `None` for any number.
        strict: whether it is an error if an operation does not run on the first device that it
            may run on.
    """

    homes: Mapping[Operation, Home] = field(default_factory=dict)
    min_segment: int = 1
    max_segments: int | None = None
    strict: bool = False

    @property
    def joins(self) -> bool:
        """Return whether segments are merged."""
        return self.min_segment > 1 or self.max_segments is not None

    @property
    def bind(self) -> bool:
        """Return whether any constraint decides where operations run."""
        return self.strict or bool(self.homes)

    def within_bodies(self) -> Constraints:
        """Return the constraints that also apply to bodies of control flow."""
        return Constraints(self.homes)
