"""What one client may take of a service."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from crosschip.ir import DeviceError


def _half_of_all() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may take.

    Attributes:
        memory: bytes that it shares with the service, with the models of programs; half of the
            machine's by default.
        programs: programs that are prepared at once.
        mappings: pieces of memory that it shares.
        waiting: runs that wait at once.
        preparing: models that it asks about, or has compiled or loaded, at once.
    """

    memory: int = field(default_factory=_half_of_all)
    programs: int = 1024
    mappings: int = 16384
    waiting: int = 4096
    preparing: int = 64


class Exceeded(DeviceError):
    """A client asks for more than it may have."""
