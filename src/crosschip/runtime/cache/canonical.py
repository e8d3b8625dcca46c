"""Canonical texts of values, for keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum


def canonical(value: object) -> str:
    """Return a text that is equal for equal values only, with all fields of dataclasses.

    Raises:
        TypeError: a value's type has no canonical text.
    """
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if is_dataclass(value) and not isinstance(value, type):
        return canonical({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Mapping):
        items = sorted((canonical(key), canonical(each)) for key, each in value.items())
        return f"{{{', '.join(f'{key}: {each}' for key, each in items)}}}"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(canonical, value)))}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(canonical, value))}]"
    raise TypeError(f"no cache key can be made of a {type(value).__name__}")
