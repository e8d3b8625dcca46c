"""What a client may take, whichever threads take it and give it back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.drivers.service.limits import Account, Exceeded


@given(st.lists(st.integers(-20, 20), max_size=50))
def test_no_more_is_taken_than_there_is(steps: list[int]) -> None:
    account, held = Account(50, "things"), []
    for step in steps:
        if step > 0:
            try:
                account.take(step)
                held.append(step)
            except Exceeded:
                assert sum(held) + step > 50
        elif held:
            account.release(held.pop(step % len(held)))
        assert account.used == sum(held) <= 50
        assert account.remaining == 50 - sum(held)


def test_threads_lose_nothing() -> None:
    account = Account(8, "things")

    def use(_: int) -> int:
        refused = 0
        for _ in range(2000):
            try:
                account.take()
            except Exceeded:
                refused += 1
            else:
                account.release()
        return refused

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(8))) == [0] * 8
    assert account.used == 0


def test_who_takes_too_much_is_told_what_is_left() -> None:
    account = Account(5, "programs")
    account.take(4)
    with pytest.raises(Exceeded, match="2 programs are asked for, and 1 are left of the 5"):
        account.take(2)
