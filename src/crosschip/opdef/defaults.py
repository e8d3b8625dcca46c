"""Default values: text that is a number, a list in braces or brackets, or a string."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from crosschip.opdef.datatypes import Datatype

Scalar: TypeAlias = int | float
Value: TypeAlias = "Scalar | str | tuple[Value, ...]"

MAX_DEPTH = 32
"""The depth of lists in each other; a tensor has no more axes."""
_LONGEST = 400
"""The digits of the longest number."""

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
    """The value that a default's text stands for.

    `1`, `-1` and `1.1` are numbers, `[[1, 2], [3, 4]]` and `{1, 2}` lists, and whatever cannot be
    read as one of these is a string. Yes and no are 1 and 0.

    >>> parse_default("{{1, 2}, {3, 4.5}}")
    ((1, 2), (3, 4.5))
    >>> parse_default("N-1")
    'N-1'
    """
    stripped = text.strip()
    if stripped[:1] not in _CLOSING:
        number = _number(stripped)
        return stripped if number is None else number
    try:
        return _list(stripped)
    except ValueError:
        return stripped


def parse_repeated(text: str) -> Scalar | None:
    """Read a list of one number that leaves its length open, as vendors' documents have it.

    Returns:
        The number; `None` if the text is another one.

    >>> parse_repeated("{0,..,0}")
    0
    """
    match = _REPEATED.fullmatch(text.strip())
    return _number(match[1] or match[2]) if match else None


def _number(text: str) -> Scalar | None:
    if len(text) > _LONGEST:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _REAL.fullmatch(text) else None


def _list(text: str) -> tuple[Value, ...]:
    """The list that a text is; `ValueError` if it is none."""
    whole: list[list[Value]] = [[]]  # the lists that are open, in the one list of the result
    closing: list[str] = []
    position, ready = 0, True  # ready for a value; else for a comma or the end
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or not (closing or position == 0):
            raise ValueError
        position, word = token.end(), token[1]
        if word in _CLOSING and ready and len(closing) < MAX_DEPTH:
            closing.append(_CLOSING[word])
            whole.append([])
        elif closing and word == closing[-1] and (not ready or not whole[-1]):
            closing.pop()
            inner = tuple(whole.pop())
            whole[-1].append(inner)
            ready = False
        elif word == "," and not ready:
            ready = True
        elif ready and (number := _number(word)) is not None:
            whole[-1].append(number)
            ready = False
        else:
            raise ValueError
    if closing:
        raise ValueError
    (items,) = whole[0]
    assert isinstance(items, tuple)
    return items


def shape_of(value: Value) -> tuple[int, ...]:
    """The shape of a list, `()` of a number or string.

    Raises:
        ValueError: its rows are not of one shape.
    """
    if not isinstance(value, tuple):
        return ()
    inner = {shape_of(part) for part in value}
    if len(inner) > 1:
        raise ValueError("its rows differ in length")
    return (len(value), *(inner.pop() if inner else ()))


def scalars(value: Value) -> list[Scalar | str]:
    """The numbers of a list, in order; a number or string by itself."""
    if not isinstance(value, tuple):
        return [value]
    return [scalar for part in value for scalar in scalars(part)]


@dataclass(frozen=True)
class Range:
    """The integers that a datatype holds."""

    low: int
    high: int


def range_of(datatype: Datatype) -> Range | None:
    """The integers of a datatype that holds plain integers or booleans; `None` for others."""
    if datatype is Datatype.BOOL_8:
        return Range(0, 1)
    if not datatype.integer:
        return None
    bits = int(datatype.name.rsplit("_", 1)[1])
    if datatype.name.startswith("UINT"):
        return Range(0, 2**bits - 1)
    return Range(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def reason_against(scalar: Scalar | str, datatype: Datatype) -> str:
    """The reason why a scalar is no value of a datatype; empty if it is one.

    A string that begins like a formula (`N-1`) may be one: what it comes to, the model says.
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
