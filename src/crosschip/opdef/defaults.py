"""Default values: texts of a number, a list in braces or brackets, or a string."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from crosschip.opdef.datatypes import Datatype

Scalar: TypeAlias = int | float
Value: TypeAlias = "Scalar | str | tuple[Value, ...]"

MAX_DEPTH = 32
"""The maximum nesting depth of lists."""
_LONGEST = 400
"""The maximum number of characters of a number."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|nan)")
_REPEATED = re.compile(
    r"(?:\{\s*([^\s,{}\[\]]+)\s*,\s*\.{2,3}\s*,\s*\1\s*\}"
    r"|\[\s*([^\s,{}\[\]]+)\s*,\s*\.{2,3}\s*,\s*\2\s*\])"
)
_TOKEN = re.compile(r"\s*([\[\]{},]|[^\[\]{},\s]+)")
_CLOSING = {"[": "]", "{": "}"}
_FORMULA = re.compile(r"[-(\s]*[A-Za-z_]")


def parse_default(text: str) -> Value:
    """Parse the text of a default.

    `1`, `-1` and `1.1` are numbers, `[[1, 2], [3, 4]]` and `{1, 2}` lists; all other texts are
    strings. Booleans are written 1 and 0.

    >>> parse_default("{{1, 2}, {3, 4.5}}")
    ((1, 2), (3, 4.5))
    >>> parse_default("N-1")
    'N-1'
    """
    stripped = text.strip()
    if stripped[:1] not in _CLOSING:
        number = _parse_number(stripped)
        return stripped if number is None else number
    try:
        return _parse_list(stripped)
    except ValueError:
        return stripped


def parse_repeated(text: str) -> Scalar | None:
    """Parse a list of unspecified length that repeats one number, as in vendors' documents.

    Returns:
        The number; `None` for any other text.

    >>> parse_repeated("{0,..,0}")
    0
    """
    match = _REPEATED.fullmatch(text.strip())
    return _parse_number(match[1] or match[2]) if match else None


def _parse_number(text: str) -> Scalar | None:
    if len(text) > _LONGEST:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _REAL.fullmatch(text) else None


def _parse_list(text: str) -> tuple[Value, ...]:
    """Parse a list; raise `ValueError` if the text is not a list."""
    stack: list[list[Value]] = [[]]  # the open lists; the first one holds the result
    closing: list[str] = []
    position, expects_value = 0, True  # otherwise a comma or the end is expected
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or not (closing or position == 0):
            raise ValueError
        position, word = token.end(), token[1]
        if word in _CLOSING and expects_value and len(closing) < MAX_DEPTH:
            closing.append(_CLOSING[word])
            stack.append([])
        elif closing and word == closing[-1] and (not expects_value or not stack[-1]):
            closing.pop()
            inner = tuple(stack.pop())
            stack[-1].append(inner)
            expects_value = False
        elif word == "," and not expects_value:
            expects_value = True
        elif expects_value and (number := _parse_number(word)) is not None:
            stack[-1].append(number)
            expects_value = False
        else:
            raise ValueError
    if closing:
        raise ValueError
    (items,) = stack[0]
    assert isinstance(items, tuple)
    return items


def shape_of(value: Value) -> tuple[int, ...]:
    """Return the shape of a nested list; `()` for a number or string.

    Raises:
        ValueError: the rows differ in shape.
    """
    if not isinstance(value, tuple):
        return ()
    inner = {shape_of(part) for part in value}
    if len(inner) > 1:
        raise ValueError("its rows differ in length")
    return (len(value), *(inner.pop() if inner else ()))


def scalars(value: Value) -> list[Scalar | str]:
    """Return the scalars of a nested list in order."""
    if not isinstance(value, tuple):
        return [value]
    return [scalar for part in value for scalar in scalars(part)]


@dataclass(frozen=True)
class Range:
    """Inclusive range of the integers that a datatype holds."""

    low: int
    high: int


def range_of(datatype: Datatype) -> Range | None:
    """Return the range of a plain integer or boolean datatype; `None` for others."""
    if datatype is Datatype.BOOL_8:
        return Range(0, 1)
    if not datatype.integer:
        return None
    bits = int(datatype.name.rsplit("_", 1)[1])
    if datatype.name.startswith("UINT"):
        return Range(0, 2**bits - 1)
    return Range(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def reason_against(scalar: Scalar | str, datatype: Datatype) -> str:
    """Return why a scalar is no value of a datatype; empty if it is one.

    A string that begins like a formula (`N-1`) is accepted, since its value depends on the model.
    """
    word = datatype.value
    if isinstance(scalar, str):
        if datatype is not Datatype.BOOL_8 and _FORMULA.match(scalar):
            return ""
        return f"{scalar[:40]!r} is not a value of {word}"
    limits = range_of(datatype)
    if limits is None:
        return ""
    if isinstance(scalar, float):
        return f"{scalar:g} is not a value of {word}"
    if not limits.low <= scalar <= limits.high:
        return f"{word} holds {limits.low} to {limits.high}, not {str(scalar)[:40]}"
    return ""
