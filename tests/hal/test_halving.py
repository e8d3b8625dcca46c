"""Finding what is refused by trying halves."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from crosschip.hal.toolchain.halving import refused


@given(st.integers(2, 40), st.sets(st.integers(0, 39)))
def test_all_that_do_not_compile_alone_are_found(count: int, bad: set[int]) -> None:
    def compiles(some: Sequence[int]) -> bool:
        return bad.isdisjoint(some)

    wrong = sorted(bad & set(range(count)))
    if wrong:
        assert sorted(refused(range(count), compiles, tries=1000)) == wrong


def test_what_only_fails_together_is_found_in_nobody() -> None:
    assert refused(range(8), lambda some: len(some) < 8, tries=100) == []


def test_it_asks_no_more_often_than_it_may() -> None:
    asked: list[Sequence[int]] = []

    def compiles(some: Sequence[int]) -> bool:
        asked.append(some)
        return 700 not in some

    assert refused(range(1024), compiles, tries=25) == [700]
    assert len(asked) == 20
    asked.clear()
    assert refused(range(1024), compiles, tries=6) == []
    assert len(asked) == 6
