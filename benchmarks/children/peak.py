"""The most memory that a process has had resident."""

import re
import resource
from pathlib import Path


def peak_bytes() -> int:
    """The peak of this process, in bytes.

    Linux hands `ru_maxrss` on from the process that started this one, so there the peak is taken
    from `/proc`, where it is this program's own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
