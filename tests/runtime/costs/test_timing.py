"""Timing of programs in turns."""

from __future__ import annotations

import time
from itertools import pairwise
from math import inf

import pytest

from crosschip.ir import DeviceError
from crosschip.runtime.costs.timing import MORE_ROUNDS, MOST_PASSES, ROUNDS, time_in_turns


def test_durations_are_those_of_the_programs() -> None:
    slow, quick = (lambda: time.sleep(0.03)), (lambda: time.sleep(0.001))
    ((first, second), (third,)) = time_in_turns([[slow, quick], [quick]])
    assert 0.03 <= first.seconds < 0.3
    assert 0.001 <= second.seconds < 0.01
    assert 0.001 <= third.seconds < 0.01
    assert all(timing.uncertainty >= 0 for timing in (first, second, third))


def test_groups_alternate() -> None:
    calls: list[str] = []
    time_in_turns([[lambda: calls.append("a")], [lambda: calls.append("b")]])
    changes = sum(one != other for one, other in pairwise(calls))
    assert 2 * ROUNDS - 1 <= changes <= 2 * (ROUNDS + MORE_ROUNDS) - 1
    assert len(calls) <= 2 * (ROUNDS + MORE_ROUNDS) * (MOST_PASSES + 1)


def test_a_failing_program_has_a_problem_and_others_a_duration() -> None:
    def fail() -> None:
        raise DeviceError("the chip is hot")

    ((bad, good),) = time_in_turns([[fail, lambda: None]])
    assert (bad.problem, bad.seconds) == ("the chip is hot", inf)
    assert good.problem == ""
    assert good.seconds < 1


def test_other_exceptions_are_passed_on() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        time_in_turns([[interrupt]])


def test_after_the_deadline_programs_run_twice() -> None:
    calls: list[str] = []
    timings = time_in_turns(
        [[lambda: calls.append("a")], [lambda: calls.append("b")]], time.perf_counter()
    )
    assert calls == ["a", "a", "b", "b"]
    assert all(timing.seconds < 1 for (timing,) in timings)
