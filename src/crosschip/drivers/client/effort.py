"""The processor time of another process, by which one that is busy is told from one that hangs."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

_BUSY_SHARE = 0.1
"""The share of one processor that a busy process gets at least, among others that are busy, too."""

_USER, _SYSTEM = 11, 12
"""The fields of processor time in `/proc/PID/stat`, counted after the name; see proc(5)."""


class Effort:
    """What a process does from now on.

    Args:
        process: its number.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._start = monotonic()
        self._before = _processor_seconds(process)

    @property
    def busy(self) -> bool:
        """True if it has been at work since then, as far as the system tells."""
        passed = monotonic() - self._start
        return _processor_seconds(self._process) - self._before > _BUSY_SHARE * passed


def _processor_seconds(process: int) -> float:
    """Return the seconds for which its threads have run; 0 if it is not there."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
