"""Objects that are not changed once they are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Never, Self


class Frozen:
    """Base of what is immutable in fact: only its constructor gives its fields their values.

    It does so with `set_field` or, where many objects are made, with each slot's `setter`. A copy
    is the object itself.
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
"""Give a field its value; for constructors of what is `Frozen`."""


def setter(owner: type[Frozen], slot: str) -> Callable[[object, Any], None]:
    """The setter of a slot, which does not look the slot up by name as `set_field` does."""
    descriptor: Any = vars(owner)[slot]
    set_value: Callable[[object, Any], None] = descriptor.__set__
    return set_value
