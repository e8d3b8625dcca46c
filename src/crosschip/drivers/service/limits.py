"""What one client may take of a service, and what it has taken."""

from __future__ import annotations

import os
import threading
from collections import deque
from dataclasses import dataclass, field

from crosschip.ir import DeviceError


def _half_of_all() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may take: a process, with all its connections.

    Attributes:
        memory: bytes that it shares with the service, with the models of programs; half of the
            machine's by default.
        programs: programs that are prepared at once.
        mappings: pieces of memory that it shares.
        waiting: runs that wait at once.
        preparing: models that it asks about, or has compiled, loaded or saved, at once.
        connections: connections.
    """

    memory: int = field(default_factory=_half_of_all)
    programs: int = 1024
    mappings: int = 16384
    waiting: int = 4096
    preparing: int = 64
    connections: int = 64


class Exceeded(DeviceError):
    """A client asks for more than it may have."""


class Account:
    """So much of something that a client may have, and what it has of that. For any thread.

    Args:
        most: how much it may have.
        what: the word for it.
    """

    def __init__(self, most: int, what: str) -> None:
        self._most = most
        self._what = what
        self._used = 0
        self._released: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """How much the client has."""
        with self._lock:
            return self._settled()

    @property
    def left(self) -> int:
        """How much it may yet have."""
        return self._most - self.used

    def take(self, much: int = 1) -> None:
        """Count what the client gets.

        Raises:
            Exceeded: it is too much.
        """
        with self._lock:
            left = self._most - self._settled()
            if much <= left:
                self._used += much
                return
        raise Exceeded(
            f"{much} {self._what} are asked for, and {left} are left of the {self._most} that a "
            "client may have"
        )

    def release(self, much: int = 1) -> None:
        """Count what the client has no more. Takes no lock: garbage is collected at any moment."""
        self._released.append(much)

    def _settled(self) -> int:
        while self._released:
            self._used -= self._released.popleft()
        return self._used


class Accounts:
    """All that a client may take.

    Args:
        limits: how much of each.

    Attributes:
        memory: bytes.
        mappings: pieces of memory.
        programs: programs.
        waiting: runs that wait.
        preparing: models that are worked on.
        connections: connections.
    """

    def __init__(self, limits: Limits) -> None:
        self.memory = Account(limits.memory, "bytes")
        self.mappings = Account(limits.mappings, "pieces of shared memory")
        self.programs = Account(limits.programs, "programs")
        self.waiting = Account(limits.waiting, "waiting runs")
        self.preparing = Account(limits.preparing, "models that are prepared at once")
        self.connections = Account(limits.connections, "connections")
