"""Competitors take turns, and no run is lost."""

from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from itertools import groupby

import pytest

from crosschip.bench.timing import Timing, interleave


def traced(names: str) -> tuple[dict[str, Callable[[], None]], list[str]]:
    """A competitor for each letter, and the list in which each run leaves its letter."""
    trace: list[str] = []
    return {name: partial(trace.append, name) for name in names}, trace


@pytest.mark.parametrize(("runs", "burst", "turns"), [(12, 5, 3), (10, 5, 2), (3, 5, 1)])
def test_each_run_is_timed_and_each_turn_warmed_up(runs: int, burst: int, turns: int) -> None:
    competitors, trace = traced("ab")
    seconds = interleave(competitors, runs, burst=burst, warm_up=2)
    assert {name: len(times) for name, times in seconds.items()} == {"a": runs, "b": runs}
    assert trace.count("a") == trace.count("b") == runs + 2 * turns


def test_a_turn_is_not_interrupted_and_each_round_has_everybody() -> None:
    competitors, trace = traced("abc")
    interleave(competitors, 8, burst=4, warm_up=1)
    rounds = trace[:15], trace[15:]
    for one in rounds:
        assert sorted(len(list(turn)) for _, turn in groupby(one)) == [5, 5, 5]


def test_orders_come_from_the_seed() -> None:
    traces = []
    for seed in (1, 1, 2):
        competitors, trace = traced("abcd")
        interleave(competitors, 4, burst=1, warm_up=0, seed=seed)
        traces.append(trace)
    assert traces[0] == traces[1] != traces[2]


def test_timing_summarizes() -> None:
    seconds = [i / 1000 for i in range(20, 0, -1)]
    assert astuple(Timing.of(seconds)) == pytest.approx((10.5, 19.0, 1.0, 6.0, 16.0))
