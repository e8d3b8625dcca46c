"""Comparing how long several ways to compute the same thing take."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Run = Callable[[], object]

_WARM_UP = 5


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one competitor's runs, in milliseconds."""

    median_ms: float
    p90_ms: float
    best_ms: float

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        """The summary of measured times."""
        ordered = sorted(seconds)
        return cls(
            statistics.median(ordered) * 1e3,
            ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))] * 1e3,
            ordered[0] * 1e3,
        )


def interleave(competitors: Mapping[str, Run], runs: int, seed: int = 0) -> dict[str, list[float]]:
    """Time competitors in turn, in a new random order each round, after a warm-up.

    Whatever slows the machine down for a while slows all of them down, and none always comes after
    the same other.

    Args:
        competitors: what to time, by name.
        runs: how often each.
        seed: of the orders.

    Returns:
        For each competitor, the seconds of each run, in rounds.
    """
    for run in competitors.values():
        for _ in range(_WARM_UP):
            run()
    generator = random.Random(seed)
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    order = list(competitors)
    for _ in range(runs):
        generator.shuffle(order)
        for name in order:
            run = competitors[name]
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return seconds
