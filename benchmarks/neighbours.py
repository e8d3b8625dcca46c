"""The part of the machine that other processes use while something is measured."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STATISTICS = Path("/proc/stat")


class Watch:
    """Looks at the processors from now on.

    Where the system does not say what its processors do, others seem to do nothing.
    """

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._others = _seconds_of_others()

    def share(self) -> float:
        """The part of all cores' time that went to anything but this process, from 0 to 1."""
        used = _seconds_of_others() - self._others
        available = (time.perf_counter() - self._start) * (os.cpu_count() or 1)
        return min(1.0, max(0.0, used / available))


def _seconds_of_others() -> float:
    """The processor time that other processes have used, since whenever."""
    if not _STATISTICS.exists():
        return 0.0
    fields = _STATISTICS.read_text().splitlines()[0].split()[1:9]
    user, nice, system, _idle, _waiting, *interrupts_and_stolen = map(int, fields)
    ticks = user + nice + system + sum(interrupts_and_stolen)
    return ticks / os.sysconf("SC_CLK_TCK") - time.process_time()
