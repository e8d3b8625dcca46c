"""Reading of JSON: a stream that never holds a long list whole, and checked access to its values."""

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
    """A place in a JSON text, which moves on as the text is read.

    An object or a list is gone through by the iterator that `fields` or `items` returns; whoever
    does reads each value where the iterator has stopped, before it goes on.

    Every method raises `ModelError` if the text is not JSON.
    """

    def __init__(self, data: bytes) -> None:
        try:
            self._text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _no_json(error) from None
        self._decode = json.JSONDecoder().raw_decode
        self._at = self._after_blank(0)

    def value(self) -> object:
        """The value here."""
        try:
            value, at = self._decode(self._text, self._at)
        except (ValueError, RecursionError) as error:
            raise _no_json(error) from None
        self._at = self._after_blank(at)
        return value

    def fields(self) -> Iterator[str] | None:
        """The names of the fields of the object here; `None` if here is something else."""
        return self._fields() if self._take("{") else None

    def items(self) -> Iterator[int] | None:
        """The numbers of the items of the list here; `None` if here is something else."""
        return self._items() if self._take("[") else None

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self._at < len(self._text):
            raise _no_json(f"more follows at {self._at}")

    def _fields(self) -> Iterator[str]:
        going = not self._take("}")
        while going:
            name = self.value()
            if not isinstance(name, str):
                raise _no_json(f"a field has no name at {self._at}")
            self._expect(":")
            yield name
            going = self._goes_on("}")

    def _items(self) -> Iterator[int]:
        number = 0
        going = not self._take("]")
        while going:
            yield number
            number += 1
            going = self._goes_on("]")

    def _goes_on(self, end: str) -> bool:
        if self._take(","):
            return True
        self._expect(end)
        return False

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise _no_json(f"there is no {sign!r} at {self._at}")

    def _take(self, sign: str) -> bool:
        """Go on behind a sign, if it is here."""
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
