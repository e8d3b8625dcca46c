"""The conditions on the values in a run for OpenVINO to compute what the operators mean.

Where an operator's definition refuses a value, an index out of range say, OpenVINO may read foreign
memory or make something up. What arrives with an input is checked before a run. Of what comes about
within a run the graph itself says whether it holds, in one more output with an element a rule.
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
"""Which part of an array it is: an axis, and an index on it; empty, all of it."""

INT32 = (int(np.iinfo(np.int32).min), int(np.iinfo(np.int32).max))
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


@dataclass(slots=True)
class Bound:
    """The least and the greatest value that elements of an input may have.

    Attributes:
        input: its place among the inputs.
        low: the least value.
        high: the greatest value.
        parts: the parts of the input that this holds of.
        rules: for each of them which operation wants it, and of which slot.
    """

    input: int
    low: int
    high: int
    parts: list[Place] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)

    def check(self, array: Array) -> None:
        """Raise a `DeviceError` for an input with elements beyond the bounds."""
        looked = _part(array, self.parts[0]) if len(self.parts) == 1 else array
        if not looked.size:
            return
        # Taken as unsigned, what is negative is too great: one look does where nothing is.
        if np.maximum.reduce(looked.view(_UNSIGNED[looked.itemsize]), axis=None) <= self.high:
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
    """A part of an array."""
    if not part:
        return array
    axis, index = part
    picked: Array = array[(slice(None),) * axis + (index,)]
    return picked


@dataclass(slots=True)
class Requirements:
    """The rules of one program.

    Attributes:
        bounds: those on the values of inputs.
        checks: what shows which runs' sizes need to be checked.
        settings: those that OpenVINO gets for this model, besides those for the caller's options.
        sizes: those on sizes that the shapes of inputs tell of.
        rules: the others, in the order of the elements of the output that says whether they hold.
        open_sizes: whether the sizes of some tensor show only in a run.
    """

    open_sizes: bool = False
    bounds: list[Bound] = field(default_factory=list)
    sizes: Conditions = field(default_factory=lambda: Conditions((), {}))
    rules: list[str] = field(default_factory=list)
    checks: InputRequirements = field(default_factory=lambda: InputRequirements(Needed.NEVER))
    settings: dict[str, Any] = field(default_factory=dict)

    def bound(self, input: int, part: Place, range_: tuple[int, int], rule: str) -> None:
        """Refuse runs in which elements of a part of an input are not in a range."""
        for known in self.bounds:
            if (known.input, known.low, known.high) == (input, *range_):
                break
        else:
            known = Bound(input, *range_)
            self.bounds.append(known)
        known.parts.append(part)
        known.rules.append(rule)

    def check_inputs(self, inputs: Sequence[Array]) -> None:
        """Raise a `DeviceError` for an input with elements beyond its bounds."""
        for bound in self.bounds:
            bound.check(inputs[bound.input])

    def check_flags(self, flags: Array) -> None:
        """Raise a `DeviceError` unless all rules held, as the graph has found."""
        if not flags.all():
            raise DeviceError(f"openvino: {self.rules[int(flags.argmin())]}")

    def to_bytes(self) -> bytes:
        """The rules as JSON."""
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
        """Read what `to_bytes` gave.

        Raises:
            ValueError, TypeError, KeyError: it is something else.
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
