"""The rules for considering a driver dead, restarting it and pausing it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from crosschip.ir import InputError


@dataclass(frozen=True, slots=True)
class Policy:
    """The rule for restarting a driver after a death of its process.

    The driver is restarted at once if a request has succeeded since the previous death, or a single
    request caused the deaths. It is paused after `deaths` deaths in a row, after more than `blamed`
    requests in a row that caused deaths, and after more than `a_minute` deaths in a minute. The
    pause is `pause` seconds, doubled after each further death, up to `longest`.

    Attributes:
        deaths: deaths in a row without a known cause.
        blamed: requests in a row that caused deaths.
        a_minute: deaths in sixty seconds.
        pause: the first pause in seconds.
        longest: the maximum pause in seconds.
    """

    deaths: int = 4
    blamed: int = 16
    a_minute: int = 120
    pause: float = 1.0
    longest: float = 60.0


@dataclass(slots=True)
class Record:
    """The deaths of a driver's processes, as seen by one client.

    Attributes:
        policy: the policy.
        in_a_row: deaths since the last success or the last one with a known cause.
        blamed: requests that caused deaths, since the last success.
        until: the end of the pause, on the clock of `time.monotonic`.
        reason: the reason of the last death.
    """

    policy: Policy
    in_a_row: int = 0
    blamed: int = 0
    until: float = 0.0
    reason: str = ""
    _moments: deque[float] = field(default_factory=deque)

    def record_death(self, reason: str) -> None:
        """Count a death."""
        now, policy = monotonic(), self.policy
        self.reason = reason
        self.in_a_row += 1
        self._moments.append(now)
        while self._moments[0] < now - 60:
            self._moments.popleft()
        if self.in_a_row >= policy.deaths or len(self._moments) > policy.a_minute:
            doublings = max(0, self.in_a_row - policy.deaths)
            self.until = now + min(policy.longest, policy.pause * 2.0 ** min(doublings, 30))

    def record_success(self) -> None:
        """Count a request that succeeded."""
        self.in_a_row = self.blamed = 0

    def record_blame(self) -> None:
        """Count a request that caused the last deaths."""
        self.in_a_row = 0
        self.blamed += 1
        is_paused = self.blamed > self.policy.blamed
        self.until = monotonic() + self.policy.pause if is_paused else 0.0

    @property
    def pause(self) -> float:
        """The remaining seconds of the pause."""
        return max(0.0, self.until - monotonic())


SETTINGS: Mapping[str, str] = {
    "driver_silence": "seconds without response or work until its process counts as dead; 2",
    "driver_run_seconds": "seconds after which a run counts as hanging; no limit if left out",
    "driver_compile_seconds": "seconds after which compiling counts as hanging; no limit",
}
"""The properties of a remote device that are not passed to the device itself."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The timeouts of a driver, in seconds.

    Attributes:
        silence: the time without response or work after which the driver is considered dead.
        run_seconds: the time after which a run is considered hanging.
        compile_seconds: the time after which compiling, loading, saving or a query is considered
            hanging.
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
