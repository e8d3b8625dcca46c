"""So many things at once: the least recently used goes first, and each is made once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.shapes.pool import Pool


def misses(keys: list[int], most: int) -> list[int]:
    """The keys of a sequence that are not among the last `most` different ones before them."""
    missed = []
    for place, key in enumerate(keys):
        recent: list[int] = []
        for other in reversed(keys[:place]):
            if other not in recent:
                recent.append(other)
        if key not in recent[:most]:
            missed.append(key)
    return missed


@given(st.lists(st.integers(0, 8), max_size=60), st.integers(1, 9))
def test_what_is_made_is_what_was_not_among_the_last_ones(keys: list[int], most: int) -> None:
    made: list[int] = []
    closed: list[tuple[int, int]] = []

    def make(key: int) -> int:
        made.append(key)
        return key

    pool = Pool(make, lambda value, uses: closed.append((value, uses)), most)
    for key in keys:
        lease = pool.take(key)
        assert lease.value == key
        pool.release(lease)
        assert len(pool) <= most
    expected = misses(keys, most)
    assert made == expected
    assert pool.created == len(expected)
    assert pool.hits == len(keys) - len(expected)
    assert pool.evicted == len(closed) == len(expected) - len(pool)
    pool.clear()
    assert sorted(value for value, _ in closed) == sorted(made)
    assert sum(uses for _, uses in closed) == len(keys)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30), st.integers(1, 3))
def test_nothing_is_closed_while_it_is_used(steps: list[tuple[int, bool]], most: int) -> None:
    """Some of what is taken is kept for the rest of the sequence."""
    numbers = iter(range(1000))
    closed: list[int] = []
    pool: Pool[int, int] = Pool(
        lambda key: next(numbers), lambda value, uses: closed.append(value), most
    )
    held = []
    for key, stays in steps:
        lease = pool.take(key)
        if stays:
            held.append(lease)
        else:
            pool.release(lease)
        assert not {lease.value for lease in held} & set(closed)
    pool.clear()
    assert not {lease.value for lease in held} & set(closed)
    for lease in held:
        pool.release(lease)
    assert sorted(closed) == list(range(pool.created))


def at_once(count: int, work: Callable[[int], object]) -> list[object]:
    """The values that threads return, or raise, that begin together."""
    barrier = threading.Barrier(count)

    def run(number: int) -> object:
        barrier.wait(60)
        try:
            return work(number)
        except ZeroDivisionError as error:
            return error

    with ThreadPoolExecutor(count) as executor:
        return list(executor.map(run, range(count)))


def test_threads_that_ask_for_one_thing_wait_for_it() -> None:
    asked, released = threading.Event(), threading.Event()
    made: list[int] = []

    def make(key: int) -> int:
        made.append(key)
        asked.set()
        assert released.wait(60)
        return key

    pool: Pool[int, int] = Pool(make, lambda value, uses: None, 2)
    with ThreadPoolExecutor(9) as executor:
        first = executor.submit(pool.take, 7)
        assert asked.wait(60)
        others = [executor.submit(pool.take, 7) for _ in range(8)]
        released.set()
        leases = {id(future.result()) for future in (first, *others)}
    assert len(leases) == 1
    assert made == [7]
    assert pool.hits == 8


def test_all_who_wait_are_told_what_went_wrong_and_may_try_again() -> None:
    asked, released = threading.Event(), threading.Event()
    attempts: list[int] = []

    def make(key: int) -> int:
        attempts.append(key)
        if len(attempts) == 1:
            asked.set()
            assert released.wait(60)
            raise ZeroDivisionError("not today")
        return key

    pool: Pool[int, int] = Pool(make, lambda value, uses: None, 2)
    with ThreadPoolExecutor(4) as executor:
        first = executor.submit(pool.take, 7)
        assert asked.wait(60)
        released.set()
        with pytest.raises(ZeroDivisionError, match="not today"):
            first.result()
    assert pool.take(7).value == 7
    assert attempts == [7, 7]


def test_many_threads_at_once() -> None:
    """Each thing is right and open while it is used."""
    closed: set[int] = set()
    numbers = iter(range(10**9))
    pool: Pool[int, tuple[int, int]] = Pool(
        lambda key: (key, next(numbers)), lambda value, uses: closed.add(value[1]), 3
    )

    def work(number: int) -> int:
        for step in range(300):
            key = (step * (number + 1)) % 5
            lease = pool.take(key)
            assert lease.value[0] == key
            assert lease.value[1] not in closed
            pool.release(lease)
        return number

    assert at_once(6, work) == list(range(6))
    assert len(pool) == 3
    assert pool.hits + pool.created == 6 * 300
    assert pool.created == pool.evicted + 3 == len(closed) + 3
