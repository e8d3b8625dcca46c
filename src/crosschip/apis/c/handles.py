"""Handles of C programs: numbers that look like pointers but cannot be dereferenced.

A number is looked up on every use, so that an invalid or destroyed handle is an ordinary error.
Numbers are not reused.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

# Not a mappable address on a 64-bit machine: a program that dereferences a handle crashes at once.
_FIRST = 1 << 52 if sys.maxsize > 2**32 else 16
_STEP = 16


@dataclass(slots=True)
class _Entry:
    """An object with its handle's state.

    Attributes:
        object: the object.
        parts: the handles that are removed with this one.
        buffers: C memory that lives as long as the handle, by use.
    """

    object: object
    parts: list[int] = field(default_factory=list)
    buffers: dict[Hashable, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoHandle:
    """The result of looking up an invalid handle.

    Attributes:
        number: the number.
        ended: whether the number belongs to a destroyed handle.
    """

    number: int
    ended: bool

    def __repr__(self) -> str:
        return f"{self.number:#x}{' (destroyed)' if self.ended else ''}"


class Handles:
    """The objects that programs hold, by number; 0 is no object."""

    def __init__(self) -> None:
        self._entries: dict[int, _Entry] = {}
        self._numbers = count(_FIRST, _STEP)
        self._last = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, object_: object, parent: int = 0) -> int:
        """Create a handle of an object.

        Args:
            object_: the object.
            parent: the handle with which this one is removed; 0 for none.
        """
        number = self._last = next(self._numbers)
        self._entries[number] = _Entry(object_)
        if parent:
            self._entries[parent].parts.append(number)
        return number

    def get(self, number: int) -> Any:
        """Return a handle's object; `None` for 0, and a `NoHandle` if invalid."""
        entry = self._entries.get(number)
        if entry is not None:
            return entry.object
        if not number:
            return None
        was_issued = _FIRST <= number <= self._last and not (number - _FIRST) % _STEP
        return NoHandle(number, was_issued)

    def buffers_of(self, number: int) -> dict[Hashable, Any]:
        """Return the C memory that lives as long as a handle, by use."""
        return self._entries[number].buffers

    def remove(self, number: int) -> None:
        """Remove a handle, and those created with it as parent."""
        entry = self._entries.pop(number, None)
        for part in entry.parts if entry is not None else ():
            self.remove(part)


HANDLES = Handles()
"""The handles of the process, shared by all libraries."""
