"""A bounded pool of values, created on demand: the least recently used is dropped first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lease(Generic[V]):
    """A value in use, which is not closed before the use ends.

    Attributes:
        value: the value.
        uses: the number of uses so far.
    """

    __slots__ = ("dropped", "users", "uses", "value")

    def __init__(self, value: V) -> None:
        self.value = value
        self.uses = 0
        self.users = 0
        self.dropped = False


class Pool(Generic[K, V]):
    """A thread-safe pool of values by key.

    Args:
        make: creates a missing value; called once even if many threads request the key.
        close: releases a dropped value when no thread uses it any more, given its number of uses.
        most: the maximum number of values that are kept.

    Attributes:
        hits: the number of requests whose value existed.
        created: the number of created values.
        evicted: the number of values that were dropped for others.
    """

    def __init__(self, make: Callable[[K], V], close: Callable[[V, int], None], most: int) -> None:
        self._make = make
        self._close = close
        self._most = most
        self._leases: OrderedDict[K, Lease[V]] = OrderedDict()
        self._making: dict[K, Future[None]] = {}
        self._lock = threading.Lock()
        self.hits = 0
        self.created = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._leases)

    def entries(self) -> list[tuple[K, V, int]]:
        """Return each value with its key and number of uses, the least recently used first."""
        with self._lock:
            return [(key, lease.value, lease.uses) for key, lease in self._leases.items()]

    def borrow(self) -> list[tuple[K, Lease[V]]]:
        """Lease all values, the least recently used first; each must be released."""
        with self._lock:
            for lease in self._leases.values():
                lease.users += 1
            return list(self._leases.items())

    def take(self, key: K) -> Lease[V]:
        """Lease the value of a key, which must be released.

        Raises:
            Exception: the error of creating it, in all threads that waited for it.
        """
        while True:
            with self._lock:
                lease = self._leases.get(key)
                if lease is not None:
                    self._leases.move_to_end(key)
                    self.hits += 1
                    lease.users += 1
                    return lease
                begun = self._making.get(key)
                if begun is None:
                    mine = self._making[key] = Future()
            if begun is None:
                return self._create(key, mine)
            begun.result()

    def release(self, lease: Lease[V], *, used: bool = True) -> None:
        """Release a lease; it counts as a use by default."""
        with self._lock:
            lease.users -= 1
            lease.uses += used
            unused = lease.dropped and not lease.users
        if unused:
            self._close(lease.value, lease.uses)

    def clear(self) -> None:
        """Close all values; those in use when their use ends."""
        with self._lock:
            dropped = self._drop(0)
        for unused in dropped:
            self._close(unused.value, unused.uses)

    def _create(self, key: K, mine: Future[None]) -> Lease[V]:
        """Create the value of a key while other threads wait for the future."""
        try:
            lease = Lease(self._make(key))
        except BaseException as error:
            with self._lock:
                del self._making[key]
            # Other threads get the error; an interruption concerns this thread alone.
            if isinstance(error, Exception):
                mine.set_exception(error)
            else:
                mine.set_result(None)
            raise
        lease.users = 1
        with self._lock:
            self._leases[key] = lease
            self.created += 1
            self.evicted += max(0, len(self._leases) - self._most)
            dropped = self._drop(self._most)
            del self._making[key]
        mine.set_result(None)
        for unused in dropped:
            self._close(unused.value, unused.uses)
        return lease

    def _drop(self, most: int) -> list[Lease[V]]:
        """Drop all but some values; return the unused ones among them. Needs the lock."""
        unused = []
        while len(self._leases) > most:
            _, lease = self._leases.popitem(last=False)
            lease.dropped = True
            if not lease.users:
                unused.append(lease)
        return unused
