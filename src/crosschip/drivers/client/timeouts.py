"""How long a driver is waited for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from crosschip.ir import InputError

SETTINGS: Mapping[str, str] = {
    "driver_silence": "seconds without a sign of life or work until its process counts as dead; 2",
    "driver_run_seconds": "seconds after which a run counts as hanging; no limit if left out",
    "driver_compile_seconds": "seconds after which compiling counts as hanging; no limit",
}
"""The settings of a device in another process that are not the device's own."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a driver is waited for.

    Attributes:
        silence: seconds without a sign of life, or of work, after which it counts as dead.
        run_seconds: seconds after which a run counts as hanging.
        compile_seconds: seconds after which compiling, loading, saving or answering does.
    """

    silence: float = 2.0
    run_seconds: float = math.inf
    compile_seconds: float = math.inf

    @property
    def limited(self) -> bool:
        """Tell whether anything counts as hanging."""
        return min(self.run_seconds, self.compile_seconds) < math.inf

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Timeouts:
        """Return the patience that properties tell; others are left aside.

        Raises:
            InputError: one is no number of seconds.
        """
        default = cls()
        return cls(
            _seconds(properties, "driver_silence", default.silence),
            _seconds(properties, "driver_run_seconds", default.run_seconds),
            _seconds(properties, "driver_compile_seconds", default.compile_seconds),
        )


def _seconds(properties: Mapping[str, str], name: str, default: float) -> float:
    text = properties.get(name)
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InputError(f"{name} is {text!r}, but must be a number of seconds")
    return seconds
