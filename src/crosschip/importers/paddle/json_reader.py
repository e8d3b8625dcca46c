"""Reading of JSON: a stream that parses long lists item by item, and checked access to values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard, TypeVar

from crosschip.ir import ModelError

_BLANK = re.compile(r"[ \t\n\r]*")
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


class JsonStream:
    """A cursor in a JSON text.

    `fields` and `items` return an iterator over an object or a list. At each step the caller must
    read the value at the cursor before it advances the iterator.

    All methods raise `ModelError` if the text is not JSON.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _no_json(error) from None
        self._decode = json.JSONDecoder().raw_decode
        self._at = self._after_blank(0)

    def value(self) -> object:
        """Read the value at the cursor."""
        try:
            value, at = self._decode(self._text, self._at)
        except (ValueError, RecursionError) as error:
            raise _no_json(error) from None
        self._at = self._after_blank(at)
        return value

    def fields(self) -> Iterator[str] | None:
        """Iterate over the field names of the object at the cursor; `None` for other values."""
        return self._fields() if self._take("{") else None

    def items(self) -> Iterator[int] | None:
        """Iterate over the indices of the list at the cursor; `None` for other values."""
        return self._items() if self._take("[") else None

    def end(self) -> None:
        """Raise ModelError unless the text ends at the cursor."""
        if self._at < len(self._text):
            raise _no_json(f"more follows at {self._at}")

    def _fields(self) -> Iterator[str]:
        has_more = not self._take("}")
        while has_more:
            name = self.value()
            if not isinstance(name, str):
                raise _no_json(f"a field has no name at {self._at}")
            self._expect(":")
            yield name
            has_more = self._has_more("}")

    def _items(self) -> Iterator[int]:
        index = 0
        has_more = not self._take("]")
        while has_more:
            yield index
            index += 1
            has_more = self._has_more("]")

    def _has_more(self, end: str) -> bool:
        if self._take(","):
            return True
        self._expect(end)
        return False

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise _no_json(f"there is no {sign!r} at {self._at}")

    def _take(self, sign: str) -> bool:
        """Skip a token if it is at the cursor; return whether it is."""
        if not self._text.startswith(sign, self._at):
            return False
        self._at = self._after_blank(self._at + 1)
        return True

    def _after_blank(self, at: int) -> int:
        if not self._text[at : at + 1].isspace():
            return at
        match = _BLANK.match(self._text, at)
        return at if match is None else match.end()


def _no_json(why: object) -> ModelError:
    return ModelError(f"is not JSON ({why})")


def field(holder: object, key: str, kind: type[T]) -> T:
    """Return a field of an object.

    Raises:
        ModelError: the field is missing, not of the kind, or an integer of more than 64 bits.
    """
    value = holder.get(key) if isinstance(holder, dict) else None
    if not _is(value, kind):
        raise ModelError(f"{key!r} is missing or not {_KINDS[kind]}")
    return value


def check_kind(value: object, kind: type[T]) -> T:
    """Return the value unchanged.

    Raises:
        ModelError: the value is not of the kind, or an integer of more than 64 bits.
    """
    if not _is(value, kind):
        raise ModelError(f"{value!r:.40} is not {_KINDS[kind]}")
    return value


def real(value: object) -> float:
    """Convert a number to float; raise ModelError for other values."""
    return float(value) if _is(value, int) else check_kind(value, float)


def item(items: Sequence[T], index: object) -> T:
    """Return an item of a list; raise ModelError if the index is invalid."""
    if not _is(index, int) or not 0 <= index < len(items):
        raise ModelError(f"{index!r} is not the index of one of {len(items)} items")
    return items[index]


def only(items: Sequence[T]) -> T:
    """Return the only item of a list; raise ModelError if there are none or several."""
    if len(items) != 1:
        raise ModelError(f"there must be one value, not {len(items)}")
    return items[0]


def _is(value: object, kind: type[T]) -> TypeGuard[T]:
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and value in _INT64
    return isinstance(value, kind)
