"""Limits on a client's resources, and its accounts."""

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
    """A client's limits; a client is a process, with all its connections.

    Attributes:
        memory: bytes shared with the service, models included; by default half of the
            machine's.
        programs: prepared programs.
        mappings: shared memory regions.
        waiting: queued runs.
        preparing: concurrent requests to query, compile, load or save.
        connections: connections.
    """

    memory: int = field(default_factory=_half_of_all)
    programs: int = 1024
    mappings: int = 16384
    waiting: int = 4096
    preparing: int = 64
    connections: int = 64


class Exceeded(DeviceError):
    """A request exceeds a client's limit."""


class Account:
    """A client's use of one resource. Thread-safe.

    Args:
        limit: the limit.
        resource: the resource's name in messages.
    """

    def __init__(self, limit: int, resource: str) -> None:
        self._limit = limit
        self._resource = resource
        self._used = 0
        self._released: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """The amount in use."""
        with self._lock:
            return self._apply_releases()

    @property
    def remaining(self) -> int:
        """The amount that remains."""
        return self._limit - self.used

    def take(self, amount: int = 1) -> None:
        """Count an amount as used.

        Raises:
            Exceeded: it exceeds the limit.
        """
        with self._lock:
            remaining = self._limit - self._apply_releases()
            if amount <= remaining:
                self._used += amount
                return
        raise Exceeded(
            f"{amount} {self._resource} are asked for, and {remaining} are left of the "
            f"{self._limit} that a client may have"
        )

    def release(self, amount: int = 1) -> None:
        """Count an amount as released. Lock-free, as garbage collection may call it at any time."""
        self._released.append(amount)

    def _apply_releases(self) -> int:
        while self._released:
            self._used -= self._released.popleft()
        return self._used


class Accounts:
    """A client's accounts.

    Args:
        limits: the limits.

    Attributes:
        memory: shared bytes.
        mappings: shared memory regions.
        programs: prepared programs.
        waiting: queued runs.
        preparing: requests in preparation.
        connections: connections.
    """

    def __init__(self, limits: Limits) -> None:
        self.memory = Account(limits.memory, "bytes")
        self.mappings = Account(limits.mappings, "pieces of shared memory")
        self.programs = Account(limits.programs, "programs")
        self.waiting = Account(limits.waiting, "waiting runs")
        self.preparing = Account(limits.preparing, "models that are prepared at once")
        self.connections = Account(limits.connections, "connections")
