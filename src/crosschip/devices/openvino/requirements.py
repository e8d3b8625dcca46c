"""Conditions on the values in a run for OpenVINO to compute what the operators define.

Where an operator's definition refuses a value, such as an index out of range, OpenVINO may read
foreign memory or return arbitrary elements. Inputs are checked before a run. Computed values are
checked in the graph, by an additional output with a boolean per rule.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, field
from typing import Any, TypeAlias

import numpy as np

from crosschip.devices.kits.input_checks import InputRequirements, Needed
from crosschip.devices.openvino.conditions import Conditions
from crosschip.ir import Array, DeviceError
from crosschip.ir.dataclass import dataclass

Place: TypeAlias = tuple[int, ...]
"""A part of an array: an axis and an index on it; empty for the whole array."""

INT32 = (int(np.iinfo(np.int32).min), int(np.iinfo(np.int32).max))
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


@dataclass(slots=True)
class Bound:
    """The range of the values of an input.

    Attributes:
        input: the index of the input.
        low: the least value.
        high: the greatest value.
        parts: the parts of the input that the range applies to.
        rules: for each part, the operation and slot that require it.
    """

    input: int
    low: int
    high: int
    parts: list[Place] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def check(self, array: Array) -> None:
        """Raise `DeviceError` if elements are out of range."""
        elements_checked = _part(array, self.parts[0]) if len(self.parts) == 1 else array
        if not elements_checked.size:
            return
        # As unsigned integers, negative ones are too great: usually one comparison suffices.
        if (
            np.maximum.reduce(
                elements_checked.view(_UNSIGNED[elements_checked.itemsize]), axis=None
            )
            <= self.high
        ):
            return
        for part, rule in zip(self.parts, self.rules, strict=True):
            elements = _part(array, part)
            least, greatest = elements.min(), elements.max()
            if least < self.low or greatest > self.high:
                extreme = least if least < self.low else greatest
                raise DeviceError(
                    f"openvino: {rule}: {extreme} is not from {self.low} to {self.high}"
                )


def _part(array: Array, part: Place) -> Array:
    if not part:
        return array
    axis, index = part
    selected: Array = array[(slice(None),) * axis + (index,)]
    return selected


@dataclass(slots=True)
class Requirements:
    """The conditions on the runs of a program.

    Attributes:
        bounds: the ranges of inputs.
        checks: whether a run's sizes need to be checked, and the inputs that determine them.
        settings: OpenVINO's settings for this model, in addition to those for the caller's options.
        sizes: the conditions on sizes.
        rules: the rules that the graph checks, in the order of the additional output.
        open_sizes: whether any tensor has dynamic dimensions.
    """

    open_sizes: bool = False
    bounds: list[Bound] = field(default_factory=list)
    sizes: Conditions = field(default_factory=lambda: Conditions((), {}))
    rules: list[str] = field(default_factory=list)
    checks: InputRequirements = field(default_factory=lambda: InputRequirements(Needed.NEVER))
    settings: dict[str, Any] = field(default_factory=dict)

    def bound(self, input: int, part: Place, range_: tuple[int, int], rule: str) -> None:
        """Add a range for a part of an input."""
        for bound in self.bounds:
            if (bound.input, bound.low, bound.high) == (input, *range_):
                break
        else:
            bound = Bound(input, *range_)
            self.bounds.append(bound)
        bound.parts.append(part)
        bound.rules.append(rule)

    def check_inputs(self, inputs: Sequence[Array]) -> None:
        """Raise `DeviceError` if an input has elements out of range."""
        for bound in self.bounds:
            bound.check(inputs[bound.input])

    def check_flags(self, flags: Array) -> None:
        """Raise `DeviceError` unless all rules held in the graph."""
        if not flags.all():
            raise DeviceError(f"openvino: {self.rules[int(flags.argmin())]}")

    def to_bytes(self) -> bytes:
        """Return the conditions as JSON."""
        plain = {
            "open_sizes": self.open_sizes,
            "bounds": [asdict(bound) for bound in self.bounds],
            "sizes": self.sizes.to_plain(),
            "rules": self.rules,
            "checks": self.checks.to_plain(),
            "settings": self.settings,
        }
        return json.dumps(plain).encode()

    @classmethod
    def from_bytes(cls, stored: bytes) -> Requirements:
        """Read the result of `to_bytes`.

        Raises:
            ValueError, TypeError, KeyError: the data has another form.
        """
        plain = json.loads(stored)
        bounds = [
            Bound(**{**bound, "parts": [tuple(part) for part in bound["parts"]]})
            for bound in plain["bounds"]
        ]
        return cls(
            plain["open_sizes"],
            bounds,
            Conditions.from_plain(plain["sizes"]),
            plain["rules"],
            InputRequirements.from_plain(plain["checks"]),
            dict(plain["settings"]),
        )
