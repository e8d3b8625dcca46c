"""Bisection of parts that do not compile."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from crosschip.hal.bisection import Bisection, Extent, Failure


def search(
    count: int, bad: set[int], allowed: int, named: set[int] | None = None
) -> tuple[list[Failure[int, str]], Bisection[int, str]]:
    def compile(some: Sequence[int]) -> str | None:
        return "no" if bad & set(some) else None

    bisection: Bisection[int, str] = Bisection(
        compile, lambda _, some: sorted((named or set()) & set(some)), allowed
    )
    return bisection.search(range(count), "no"), bisection


@given(st.integers(2, 40), st.sets(st.integers(0, 39), min_size=1))
def test_all_that_do_not_compile_alone_are_found(count: int, bad: set[int]) -> None:
    wrong = sorted(bad & set(range(count)))
    if wrong:
        failures, _ = search(count, bad, 1000)
        assert [list(failure.parts) for failure in failures] == [[each] for each in wrong]
        assert {failure.extent for failure in failures} == {Extent.ALONE}


@given(st.integers(2, 200), st.sets(st.integers(0, 199), min_size=1), st.integers(0, 60))
def test_what_is_told_fails_however_few_compilations_are_allowed(
    count: int, bad: set[int], allowed: int
) -> None:
    wrong = bad & set(range(count))
    if wrong:
        failures, bisection = search(count, bad, allowed)
        assert bisection.compilations <= allowed
        assert failures
        for failure in failures:
            assert wrong & set(failure.parts)
            assert (len(failure.parts) == 1) >= (failure.extent is Extent.ALONE)


def test_what_only_fails_together_is_told_as_such() -> None:
    bisection: Bisection[int, str] = Bisection(
        lambda some: "no" if len(some) == 8 else None, lambda *_: (), 100
    )
    (failure,) = bisection.search(range(8), "no")
    assert (list(failure.parts), failure.extent) == (list(range(8)), Extent.TOGETHER)


def test_what_an_error_names_is_not_looked_for() -> None:
    failures, bisection = search(64, {10, 50}, 100, named={50})
    assert [list(failure.parts) for failure in failures] == [[50]]
    assert bisection.compilations == 0


def test_it_compiles_no_more_often_than_it_may() -> None:
    failures, bisection = search(1024, {700}, 25)
    assert ([list(f.parts) for f in failures], bisection.compilations) == ([[700]], 20)
    failures, bisection = search(1024, {700}, 6)
    assert (len(failures[0].parts), failures[0].extent) == (64, Extent.UNFINISHED)
    assert bisection.compilations == 6
