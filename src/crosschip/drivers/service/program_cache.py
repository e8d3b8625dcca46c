"""Cache of programs that several clients share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from threading import Lock

from crosschip.drivers.protocol import memory, messages
from crosschip.hal import Options, Program
from crosschip.ir import Array, Model

Key = bytes


def key_of(options: Options, content: Array, saved: Array | None) -> Key:
    """Return a program's cache key: a digest of model, options and saved program.

    A program loaded from saved bytes is shared only by clients that sent the same bytes, so these
    are part of the key.
    """
    digest = hashlib.sha256(messages.encode(options))
    for part in (content, saved):
        digest.update(b"-" if part is None else hashlib.sha256(part.data).digest())
    return digest.digest()


class SharedProgram:
    """A program with a reference count.

    Args:
        program: the device's program.
        model: the program's model.

    Attributes:
        uses: the number of users.
    """

    def __init__(self, program: Program, model: Model) -> None:
        self.program = program
        self.model = model
        self.uses = 1
        self._saving = Lock()
        self._saved: memory.Sealed | None = None

    def save(self) -> memory.Sealed | None:
        """Return the saved program, saved once; `None` if the device cannot save it."""
        with self._saving:
            if self._saved is None:
                saved = self.program.save()
                self._saved = None if saved is None else memory.Sealed.of(saved)
            return self._saved

    def close(self) -> None:
        """Release the program."""
        if self._saved is not None:
            self._saved.close()
        self.program.close()


class ProgramCache:
    """Programs by key; a program is closed when its last user leaves."""

    def __init__(self) -> None:
        self._entries: dict[Key, SharedProgram] = {}
        self._lock = Lock()

    def take(self, key: Key, make: Callable[[], SharedProgram]) -> SharedProgram:
        """Return the program with a key, created if absent. One thread at a time may call this.

        Args:
            key: the key, of `key_of`.
            make: creates the program.
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
        """Decrement a program's number of users; close it at 0."""
        with self._lock:
            entry = self._entries[key]
            entry.uses -= 1
            if entry.uses:
                return
            del self._entries[key]
        entry.close()
