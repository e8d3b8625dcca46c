"""Timing of several programs in turns, so that other load disturbs all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np

from crosschip.ir import Error
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.device_timing import wait_for_idle

ROUNDS, MORE_ROUNDS = 3, 5
"""The number of turns of each group of programs, and of further ones if durations vary."""

_STEADY = 0.05
"""Durations vary if the sum of their uncertainties exceeds this share of their sum."""

TURN_SECONDS = 0.06
"""The least duration of a turn, within the limits of passes."""

FEWEST_PASSES, MOST_PASSES = 2, 12
"""The limits of the number of times that each program of a group runs in a turn."""

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Timing:
    """The measured duration of a program.

    Attributes:
        seconds: the shortest duration: other load only lengthens them.
        uncertainty: the distance of the lower quartile, in seconds.
        problem: why there is no duration; empty if there is one.
    """

    seconds: float
    uncertainty: float
    problem: str = ""


def time_in_turns(groups: Sequence[Sequence[Run]], deadline: float = inf) -> list[list[Timing]]:
    """Time programs; the groups alternate, and the programs of a group run one after the other.

    So each program finds the caches as a run of all of them leaves them. The first pass of a turn
    does not count. After the deadline no turn begins, but each program runs twice in any case.

    Args:
        groups: functions that run a program, for each engine.
        deadline: a value of `time.perf_counter`.

    Returns:
        The timing of each program.
    """
    samples: list[list[list[float]]] = [[[] for _ in group] for group in groups]
    problems: dict[tuple[int, int], str] = {}
    timings: list[list[Timing]] = []
    for turn in range(ROUNDS + MORE_ROUNDS):
        if turn >= ROUNDS and _is_steady(timings):
            break
        for number, group in enumerate(groups):
            if turn and time.perf_counter() > deadline:
                return timings
            runs = {i: run for i, run in enumerate(group) if (number, i) not in problems}
            problems |= {
                (number, i): why for i, why in _turn(runs, samples[number], deadline).items()
            }
        timings = [
            [_timing(times, problems.get((number, i), "")) for i, times in enumerate(group)]
            for number, group in enumerate(samples)
        ]
    return timings


def _is_steady(timings: Sequence[Sequence[Timing]]) -> bool:
    """Return whether the durations of all groups vary little."""
    for group in timings:
        valid = [timing for timing in group if not timing.problem]
        seconds = sum(timing.seconds for timing in valid)
        if sum(timing.uncertainty for timing in valid) > _STEADY * seconds:
            return False
    return True


def _turn(
    runs: Mapping[int, Run], samples: Sequence[list[float]], deadline: float
) -> dict[int, str]:
    """Run the programs of a group in turn; return the problems of those that fail."""
    wait_for_idle()
    problems: dict[int, str] = {}
    begin = time.perf_counter()
    for index, run in runs.items():
        try:
            run()
        except Error as error:
            problems[index] = str(error)
    remaining = [(run, samples[index]) for index, run in runs.items() if index not in problems]
    first = time.perf_counter() - begin
    passes = int(min(MOST_PASSES, max(FEWEST_PASSES, TURN_SECONDS / max(first, 1e-6))))
    now = time.perf_counter()
    for number in range(passes):
        if number and now > deadline:
            break
        for run, times in remaining:
            run()
            before, now = now, time.perf_counter()
            times.append(now - before)
    return problems


def _timing(times: Sequence[float], problem: str) -> Timing:
    if problem or not times:
        return Timing(inf, inf, problem or "was not run")
    shortest = min(times)
    return Timing(shortest, float(np.quantile(times, 0.25)) - shortest)
