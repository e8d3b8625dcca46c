"""How often a driver may die before those that use it go elsewhere, and for how long they do."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from time import monotonic


@dataclass(frozen=True, slots=True)
class Policy:
    """When a driver is started again after its death.

    At once, as long as something has succeeded between its deaths, or one request is to blame for
    them. After `deaths` without, more than `blamed` requests to blame with none that succeeded
    between them, or more than `a_minute` deaths of any kind, it is left alone: for `pause` seconds,
    twice as long after each further death, at most `longest`.

    Attributes:
        deaths: in a row, of which nobody knows why.
        blamed: requests in a row that it died of.
        a_minute: deaths in sixty seconds.
        pause: seconds.
        longest: seconds.
    """

    deaths: int = 4
    blamed: int = 16
    a_minute: int = 120
    pause: float = 1.0
    longest: float = 60.0


@dataclass(slots=True)
class Record:
    """What a driver's processes have come to, as one client has seen it.

    Attributes:
        policy: what is made of it.
        in_a_row: deaths since something last succeeded, or was to blame for those before.
        blamed: requests that were, since something last succeeded.
        until: the moment before which the driver is left alone, on the clock of `time.monotonic`.
        reason: of the last death.
    """

    policy: Policy
    in_a_row: int = 0
    blamed: int = 0
    until: float = 0.0
    reason: str = ""
    _moments: deque[float] = field(default_factory=deque)

    def died(self, reason: str) -> None:
        """Count a death."""
        now, policy = monotonic(), self.policy
        self.reason = reason
        self.in_a_row += 1
        self._moments.append(now)
        while self._moments[0] < now - 60:
            self._moments.popleft()
        if self.in_a_row >= policy.deaths or len(self._moments) > policy.a_minute:
            times = max(0, self.in_a_row - policy.deaths)
            self.until = now + min(policy.longest, policy.pause * 2.0 ** min(times, 30))

    def succeeded(self) -> None:
        """Something that was asked for has been done."""
        self.in_a_row = self.blamed = 0

    def explained(self) -> None:
        """A request is to blame for the last deaths."""
        self.in_a_row = 0
        self.blamed += 1
        left_alone = self.blamed > self.policy.blamed
        self.until = monotonic() + self.policy.pause if left_alone else 0.0

    @property
    def pause(self) -> float:
        """For how many more seconds the driver is left alone."""
        return max(0.0, self.until - monotonic())
