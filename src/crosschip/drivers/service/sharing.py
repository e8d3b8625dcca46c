"""Programs that several clients have: one for all that ask for the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from threading import Lock

from crosschip.drivers.protocol import memory, messages
from crosschip.hal import Options, Program
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


class Shared:
    """A program, whoever has it.

    Args:
        program: the device's.
        model: what it was made from.

    Attributes:
        uses: how many have it.
    """

    def __init__(self, program: Program, model: Model) -> None:
        self.program = program
        self.model = model
        self.uses = 1
        self._saving = Lock()
        self._saved: memory.Sealed | None = None

    def save(self) -> memory.Sealed | None:
        """What the program is saved as, the same for all; `None` if it cannot be saved."""
        with self._saving:
            if self._saved is None:
                saved = self.program.save()
                self._saved = None if saved is None else memory.Sealed.of(saved)
            return self._saved

    def close(self) -> None:
        """Release the program; nobody has it any more."""
        if self._saved is not None:
            self._saved.close()
        self.program.close()


class Sharing:
    """The programs that there are; the last one to leave closes one."""

    def __init__(self) -> None:
        self._entries: dict[Key, Shared] = {}
        self._lock = Lock()

    def take(self, key: Key, make: Callable[[], Shared]) -> Shared:
        """Return the program that is known by a key, made if there is none. One thread at a time asks.

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
        entry.close()
