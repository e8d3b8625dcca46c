"""Comparison of the run times of several competitors."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from crosschip.progress import task
from crosschip.runtime.device_timing import wait_for_idle

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one competitor's runs, in milliseconds: `p25_ms` and `p75_ms` are quartiles."""

    median_ms: float
    p90_ms: float
    best_ms: float
    p25_ms: float
    p75_ms: float

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        """Summarize measured times."""
        ordered = sorted(second * 1e3 for second in seconds)

        def at(part: float) -> float:
            return ordered[min(len(ordered) - 1, int(part * len(ordered)))]

        return cls(statistics.median(ordered), at(0.9), ordered[0], at(0.25), at(0.75))


def interleave(
    competitors: Mapping[str, Run],
    runs: int,
    *,
    burst: int = 5,
    warm_up: int = 2,
    seed: int = 0,
) -> dict[str, list[float]]:
    """Time competitors in turns, in a new random order each round.

    So other load affects all of them, and the effects of the preceding turn average out. A turn
    begins when the threads of the preceding one are idle, with runs that are not timed.

    Args:
        competitors: the functions to time, by name.
        runs: the number of timed runs of each.
        burst: the number of timed runs in a turn.
        warm_up: the number of untimed runs at the beginning of a turn.
        seed: the seed of the random orders.

    Returns:
        The seconds of each timed run, by competitor.
    """
    generator = random.Random(seed)
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    order = list(competitors)
    with task(f"timing {', '.join(order)}", runs * len(order), measures=True) as timing:
        for done in range(0, runs, burst):
            generator.shuffle(order)
            for name in order:
                wait_for_idle()
                run, count = competitors[name], min(burst, runs - done)
                for _ in range(warm_up):
                    run()
                seconds[name] += _timed(run, count)
                timing.advance(count)
    return seconds


def _timed(run: Run, count: int) -> list[float]:
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds
