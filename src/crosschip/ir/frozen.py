"""Immutable objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Never, Self


class Frozen:
    """Base class of immutable objects: only the constructor sets fields.

    Constructors use `set_field` or, for classes with many instances, the `setter` of each slot. A
    copy is the object itself.
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


set_field = object.__setattr__
"""Set a field in the constructor of a `Frozen` class."""


def setter(owner: type[Frozen], slot: str) -> Callable[[object, Any], None]:
    """Return a slot's setter, which is faster than `set_field` as it needs no lookup by name."""
    descriptor: Any = vars(owner)[slot]
    set_value: Callable[[object, Any], None] = descriptor.__set__
    return set_value
