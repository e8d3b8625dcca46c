"""Types of the settings of preprocessing, and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from crosschip.ir import Array, ElementType, InputError
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import FLOATS, INTEGERS

Pair = tuple[int, int]
"""A height and a width."""

Numbers = float | Sequence[float] | Array
"""One number, or one a channel."""

Fit = Literal["stretch", "shorter", "longer"]
Position = Literal["center", "start"]
Interpolation = Literal["linear", "nearest", "cubic", "area"]
Color = Literal["RGB", "BGR", "GRAY"]
Layout = Literal["NCHW", "NHWC"]

MAX_SIDE = 2**15
"""The maximum number of pixels of a side of the result."""


def as_pair(name: str, value: int | Sequence[int] | None) -> Pair | None:
    """Return a height and a width, of which one number stands for both.

    Raises:
        InputError: the value, of the setting with the name, is not of this kind.
    """
    if value is None:
        return None
    pair = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(pair) != 2 or not all(type(n) is int and 0 < n <= MAX_SIDE for n in pair):
        raise InputError(f"{name} is {value!r}; give a height and a width in pixels, or one number")
    return pair


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise InputError unless the value of the setting with the name is one of the choices."""
    if value not in choices:
        near = did_you_mean(str(value), choices)
        raise InputError(f"{name} is {value!r}{near}; choose one of {', '.join(choices)}")


def as_element_type(value: ElementType | str | None) -> ElementType | None:
    """Return the element type with a name.

    Raises:
        InputError: no pixel can have it.
    """
    if value is None or (isinstance(value, ElementType) and value in FLOATS | INTEGERS):
        return value
    check_choice("element_type", str(value), sorted(map(str, FLOATS | INTEGERS)))
    return ElementType(value)
