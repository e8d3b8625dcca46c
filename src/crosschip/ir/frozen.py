"""Objects that are not changed once they are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Never, Self


class Frozen:
    """Base of what is immutable in fact: its constructor calls `settle`, nothing else can assign.

    A copy is the object itself.
    """

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(
            f"{type(self).__name__}.{name} cannot be set: it is immutable; make another one"
        )

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted: it is immutable")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Mapping[int, object]) -> Self:
        return self


settle = object.__setattr__
"""Give a field its value; for constructors of what is `Frozen`."""
