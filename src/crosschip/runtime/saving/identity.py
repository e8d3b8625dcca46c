"""The marks by which compiled models are known, and what devices must be to load them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.ir.dataclass import dataclass
from crosschip.runtime.guard.devices import GuardedDevice


@dataclass(frozen=True, slots=True)
class Identity:
    """The marks by which a compiled model is known.

    Attributes:
        token: the name under which it is kept; a caller's, or 32 digits of `request`.
        model: the key of the model that was compiled (see `crosschip.runtime.cache.key`).
        request: the key of all that the call of `compile` asked for, the model among it.
    """

    token: str
    model: str
    request: str


@dataclass(frozen=True, slots=True)
class Needs:
    """A device as it must be where the programs that it compiled are loaded.

    Attributes:
        name: the device's.
        version: of what does the work.
        tied_to: what else must be the same.
        properties: the settings that it is opened with.
    """

    name: str
    version: str
    tied_to: tuple[str, ...]
    properties: Mapping[str, str]

    @classmethod
    def of(cls, device: GuardedDevice) -> Needs:
        """The description of a device as it is."""
        tied_to = device.capabilities.tied_to
        return cls(device.name, device.version, tuple(tied_to), dict(device.properties))

    def mismatch(self, device: GuardedDevice) -> str:
        """The reason why a device is not the same, in words; empty if it is."""
        found = Needs.of(device)
        if found.version != self.version:
            return f"{self.name} {self.version} compiled it, and here is {found.version}"
        if found.tied_to != self.tied_to:
            theirs, ours = _difference(self.tied_to, found.tied_to)
            return f"{self.name} compiled it for another machine: {theirs!r}, and here is {ours!r}"
        if found.properties != self.properties:
            return (
                f"{self.name} compiled it with the properties {dict(self.properties)}, and has "
                f"{dict(found.properties)}"
            )
        return ""


def _difference(theirs: Sequence[str], ours: Sequence[str]) -> tuple[str, str]:
    """The first lines in which two descriptions of machines differ."""
    lines = [[line for text in one for line in text.splitlines()] for one in (theirs, ours)]
    lacking = [
        next((line for line in one if line not in other), "")
        for one, other in (lines, reversed(lines))
    ]
    return lacking[0], lacking[1]
