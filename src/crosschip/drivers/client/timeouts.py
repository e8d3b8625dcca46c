"""Timeouts of a driver."""

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
"""The properties of a remote device that are not passed to the device itself."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts of a driver, in seconds.

    Attributes:
        silence: without a sign of life or of work, after which it is considered dead.
        run_seconds: after which a run is considered hanging.
        compile_seconds: after which compiling, loading, saving or a query is.
    """

    silence: float = 2.0
    run_seconds: float = math.inf
    compile_seconds: float = math.inf

    @property
    def limited(self) -> bool:
        """Whether runs or compilations have a limit."""
        return min(self.run_seconds, self.compile_seconds) < math.inf

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Timeouts:
        """Return the timeouts in a device's properties; other properties are ignored.

        Raises:
            InputError: a value is no positive number of seconds.
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
