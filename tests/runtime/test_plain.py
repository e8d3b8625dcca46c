"""Dataclasses as JSON: what is made of what was plain is the same, and nothing else is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.plain import from_plain, to_plain


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    colour: Colour
    pair: tuple[str, int]


@dataclass(frozen=True)
class Outer:
    number: int
    real: float
    flag: bool
    text: str | None
    inner: tuple[Inner, ...]
    table: Mapping[str, tuple[int, ...]]


inners = st.builds(Inner, st.sampled_from(Colour), st.tuples(st.text(), st.integers()))
outers = st.builds(
    Outer,
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.none() | st.text(),
    st.lists(inners).map(tuple),
    st.dictionaries(st.text(), st.lists(st.integers()).map(tuple)),
)


@given(outers)
def test_what_was_plain_is_the_same_again(value: Outer) -> None:
    assert from_plain(Outer, json.loads(json.dumps(to_plain(value)))) == value


GOOD: dict[str, Any] = {
    "number": 1,
    "real": 2,
    "flag": True,
    "text": None,
    "inner": [{"colour": "red", "pair": ["a", 1]}],
    "table": {"a": [1]},
}


@pytest.mark.parametrize(
    "change",
    [
        {"number": True},
        {"number": 1.0},
        {"number": "1"},
        {"real": "2"},
        {"real": True},
        {"flag": 1},
        {"text": 3},
        {"inner": {}},
        {"inner": [{"colour": "green", "pair": ["a", 1]}]},
        {"inner": [{"colour": "red", "pair": ["a"]}]},
        {"inner": [{"colour": "red"}]},
        {"table": []},
        {"table": {"a": 1}},
        {"extra": 1},
    ],
    ids=str,
)
def test_what_is_of_another_form_is_refused(change: dict[str, Any]) -> None:
    assert from_plain(Outer, GOOD).inner[0].colour is Colour.RED
    with pytest.raises(ValueError, match=r"is no|is none of|is not a valid|argument"):
        from_plain(Outer, {**GOOD, **change})


def test_what_has_no_plain_form_is_refused() -> None:
    with pytest.raises(TypeError, match="a complex has no plain form"):
        to_plain([1j])
