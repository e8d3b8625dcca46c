"""When a driver is started again after its death."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.drivers.client import policy
from crosschip.drivers.client.policy import Policy, Record


class Clock:
    now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(policy, "monotonic", lambda: clock.now)
    return clock


def test_pauses_grow_with_deaths_in_a_row_and_end_with_success(clock: Clock) -> None:
    record = Record(Policy(deaths=3, pause=1, longest=5))
    pauses = []
    for _ in range(6):
        clock.now += 10
        record.record_death("why")
        pauses.append(record.pause)
    assert pauses == [0, 0, 1, 2, 4, 5]
    clock.now += 10
    assert record.pause == 0
    record.record_success()
    record.record_death("why")
    assert record.pause == 0


def test_many_deaths_a_minute_are_too_many_whatever_succeeds(clock: Clock) -> None:
    record = Record(Policy(a_minute=10))
    for _ in range(11):
        assert record.pause == 0
        clock.now += 5
        record.record_death("why")
        record.record_success()
    assert record.pause > 0
    clock.now += 60
    record.record_death("why")
    assert record.pause == 0


@given(st.lists(st.sampled_from(["death", "success", "blame"]), max_size=60))
def test_what_requests_are_to_blame_for_counts_apart(steps: list[str]) -> None:
    record = Record(Policy(deaths=3, blamed=2, a_minute=1000))
    unexplained = blamed = 0
    for step in steps:
        if step == "death":
            record.record_death("why")
            unexplained += 1
            assert (record.pause > 0) >= (unexplained >= 3)
        elif step == "success":
            record.record_success()
            unexplained = blamed = 0
        else:
            record.record_blame()
            unexplained, blamed = 0, blamed + 1
            assert (record.pause > 0) == (blamed > 2)
