"""Plain tables: columns stand below each other, whatever is in them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crosschip.drawing import columns

CELL = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=9)


@given(st.lists(st.lists(CELL, min_size=3, max_size=3), max_size=6))
def test_columns_stand_below_each_other(rows: list[list[str]]) -> None:
    lines = columns(("a", "b", "c"), rows, ("b",)).splitlines()
    assert [line.split() for line in lines] == [["a", "b", "c"], *rows]
    second = {len(line) - len(line.split(maxsplit=2)[2]) for line in lines}
    assert len(second) == 1, "where the third column begins"


def test_what_is_wide_or_has_lines() -> None:
    found = columns(("name", "why"), [("概率", "one\ntwo"), ("e\u0301t", "")])
    assert found == "name  why\n概率  one; two\ne\u0301t"


def test_no_rows() -> None:
    assert columns(("name", "why"), []) == "name  why"
