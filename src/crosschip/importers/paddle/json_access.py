"""Checked access to what a JSON file holds; it can hold anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard, TypeVar

from crosschip.ir import ModelError

_INT64 = range(-(2**63), 2**63)
_KINDS: Mapping[type, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "an object",
}

T = TypeVar("T")


def field(holder: object, key: str, kind: type[T]) -> T:
    """The field of an object.

    Raises:
        ModelError: it is missing or not of the kind; an integer must have at most 64 bits.
    """
    value = holder.get(key) if isinstance(holder, dict) else None
    if not _is(value, kind):
        raise ModelError(f"{key!r} is missing or not {_KINDS[kind]}")
    return value


def checked(value: object, kind: type[T]) -> T:
    """The value itself.

    Raises:
        ModelError: it is not of the kind; an integer must have at most 64 bits.
    """
    if not _is(value, kind):
        raise ModelError(f"{value!r:.40} is not {_KINDS[kind]}")
    return value


def real(value: object) -> float:
    """A number with or without a fraction; `ModelError` if it is none."""
    return float(value) if _is(value, int) else checked(value, float)


def item_at(items: Sequence[T], place: object) -> T:
    """The item of a list at a place; `ModelError` if there is none."""
    if not _is(place, int) or not 0 <= place < len(items):
        raise ModelError(f"{place!r} is not the place of one of {len(items)} items")
    return items[place]


def only(items: Sequence[T]) -> T:
    """The item of a list of one; `ModelError` if there are more or none."""
    if len(items) != 1:
        raise ModelError(f"there must be one value, not {len(items)}")
    return items[0]


def _is(value: object, kind: type[T]) -> TypeGuard[T]:
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and value in _INT64
    return isinstance(value, kind)
