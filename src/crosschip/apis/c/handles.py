"""What programs hold of objects: numbers that look like pointers, and lead nowhere.

A number is looked up before anything is done with it, so that one that was never given, or whose
object has been destroyed, is an error like any other. Numbers are not used twice.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

# No address that a 64-bit machine can map, so that to read through one ends the program at once.
_FIRST = 1 << 52 if sys.maxsize > 2**32 else 16
_STEP = 16


@dataclass(slots=True)
class _Held:
    """An object that a program has a number for.

    Attributes:
        object: the object.
        parts: the numbers of those that end with it.
        kept: memory of C's that is there as long as it is.
    """

    object: object
    parts: list[int] = field(default_factory=list)
    objects_of: dict[Hashable, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoHandle:
    """What a number stands for that is no handle.

    Attributes:
        number: the number.
        ended: whether it was one.
    """

    number: int
    ended: bool

    def __repr__(self) -> str:
        return f"{self.number:#x}{' (destroyed)' if self.ended else ''}"


class Handles:
    """The objects that a program holds, by number; 0 is no object."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._numbers = count(_FIRST, _STEP)
        self._last = 0

    def __len__(self) -> int:
        return len(self._held)

    def add(self, object_: object, whole: int = 0) -> int:
        """A new number for an object.

        Args:
            object_: the object.
            whole: the number of one that this one ends with; 0 for none.
        """
        number = self._last = next(self._numbers)
        self._held[number] = _Held(object_)
        if whole:
            self._held[whole].parts.append(number)
        return number

    def get(self, number: int) -> Any:
        """The object of a number; `None` for 0, and a `NoHandle` if it has none."""
        held = self._held.get(number)
        if held is not None:
            return held.object
        if not number:
            return None
        was_issued = _FIRST <= number <= self._last and not (number - _FIRST) % _STEP
        return NoHandle(number, was_issued)

    def objects_of(self, number: int) -> dict[Hashable, Any]:
        """The memory that is there as long as an object that there is, by what it is for."""
        return self._held[number].objects_of

    def remove(self, number: int) -> None:
        """Forget an object, and those that end with it."""
        held = self._held.pop(number, None)
        for part in held.parts if held is not None else ():
            self.remove(part)


HANDLES = Handles()
"""Those of the process: all libraries have them in common."""
