"""Conversion of dataclasses to plain JSON values and back, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Return a value as lists, dictionaries, texts and numbers; a dataclass with all its fields.

    Raises:
        TypeError: the value contains an unsupported type.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [to_plain(each) for each in value]
    raise TypeError(f"a {type(value).__name__} has no plain form")


def from_plain(kind: type[T], plain: object) -> T:
    """Return the value of a type from the result of `to_plain`.

    Args:
        kind: a dataclass, or a field's type: number, text, enumeration, tuple, mapping or union.
        plain: the plain value, from an untrusted source.

    Raises:
        ValueError: the plain value is malformed.
    """
    return cast(T, _value_from(kind, plain))


def _value_from(kind: Any, plain: object) -> object:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is object:
        return plain
    if origin in (Union, UnionType):
        return _value_of_union(arguments, plain)
    if kind in (None, NoneType) and plain is None:
        return None
    if kind is float and type(plain) in (int, float):
        return plain
    if kind in (int, str, bool) and type(plain) is kind:
        return plain
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(plain)
    if is_dataclass(kind) and isinstance(plain, Mapping):
        hints = _hints(cast(type, kind))
        if set(plain) == set(hints):
            return cast(Any, kind)(**{n: _value_from(hint, plain[n]) for n, hint in hints.items()})
    if origin is tuple and isinstance(plain, list):
        if len(arguments) == 2 and arguments[1] is ...:
            return tuple([_value_from(arguments[0], each) for each in plain])
        return tuple([_value_from(k, each) for k, each in zip(arguments, plain, strict=True)])
    if origin is Mapping and isinstance(plain, Mapping):
        return {
            _value_from(arguments[0], key): _value_from(arguments[1], v) for key, v in plain.items()
        }
    raise ValueError(f"{str(plain)[:50]!r} is no {getattr(kind, '__name__', kind)}")


def _value_of_union(kinds: Sequence[Any], plain: object) -> object:
    for kind in kinds:
        try:
            return _value_from(kind, plain)
        except ValueError:
            continue
    raise ValueError(f"{str(plain)[:50]!r} is none of {', '.join(map(str, kinds))}")


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}
