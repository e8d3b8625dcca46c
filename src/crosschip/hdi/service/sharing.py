"""Programs that several clients have: one for all that ask for the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from crosschip.hal import Options, Program
from crosschip.hdi.wire import messages
from crosschip.ir import Array, Model

Key = bytes


def key_of(options: Options, content: Array, saved: Array | None) -> Key:
    """What a program is known by: the model, the options, and what it is loaded from.

    Who hands in what was saved vouches for it alone, so only those who hand in the same share it.
    """
    digest = hashlib.sha256(messages.encode(options))
    for part in (content, saved):
        digest.update(b"-" if part is None else hashlib.sha256(part.data).digest())
    return digest.digest()


@dataclass(slots=True)
class Shared:
    """A program, the model that it was made from, and how many have it."""

    program: Program
    model: Model
    uses: int = 1


class Sharing:
    """The programs that there are; the last one to leave closes one."""

    def __init__(self) -> None:
        self._entries: dict[Key, Shared] = {}
        self._lock = Lock()

    def take(self, key: Key, make: Callable[[], Shared]) -> Shared:
        """The program that is known by a key, made if there is none. One thread at a time asks.

        Args:
            key: of `key_of`.
            make: makes it.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                entry.uses += 1
                return entry
        entry = make()
        with self._lock:
            self._entries[key] = entry
        return entry

    def leave(self, key: Key) -> None:
        """One has it no more."""
        with self._lock:
            entry = self._entries[key]
            entry.uses -= 1
            if entry.uses:
                return
            del self._entries[key]
        entry.program.close()
