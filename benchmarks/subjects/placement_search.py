"""The search for placements of blocks on devices.

Random problems with five devices: the transfers between them differ in each direction, some
devices refuse some blocks, and launches and transfers are small, middling or large beside the
blocks. Small problems are compared with the optimum, which an enumeration with bounds finds;
problems of 100 blocks with the best of simulated annealing and a search of tenfold time, neither
of which knows the optimum. Large problems show the time. Random sets of constraints (pins,
refusals, memory limits, dialects, a maximum number of segments; up to 14 blocks) count the
placements that violate one, and the sets for which none was found.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Annotated

from benchmarks.annealing import annealed_seconds
from benchmarks.placement_problems import optimal_seconds, random_problem, violations
from benchmarks.subject import Column, Row
from crosschip.runtime.placement.search.problem import InfeasibleError, PlacementProblem
from crosschip.runtime.placement.search.solver import solve

SMALL_GAP, LARGE_GAP = 0.01, 0.03
LIMITS = {10_000: 2.0, 100_000: 5.0}
REQUIREMENT = (
    f"at most {SMALL_GAP:.0%} above the optimum in small problems and {LARGE_GAP:.0%} above the "
    f"best known in those of 100 blocks; {LIMITS[10_000]:g} s for 10,000 blocks and "
    f"{LIMITS[100_000]:g} s for 100,000; no constraint is violated"
)

_STEPS = 10_000
"""The steps of simulated annealing."""


@dataclass(frozen=True)
class Searches(Row):
    """Searches of problems of one kind."""

    problems: Annotated[str, Column("problems")]
    count: Annotated[int, Column("number", ",")]
    largest: Annotated[float | None, Column("largest gap", ".2%")]
    average: Annotated[float | None, Column("mean gap", ".3%")]
    slowest: Annotated[float, Column("slowest s", ".2f")]
    violations: Annotated[int | None, Column("violations")]
    unsolved: Annotated[int | None, Column("without placement", ",")]
    limit: Annotated[float, Column("limit", "g")]

    @property
    def met(self) -> bool:
        if self.violations is not None:
            return self.violations <= self.limit
        return (self.slowest if self.largest is None else self.largest) <= self.limit


def measure(*, quick: bool) -> Iterator[Searches]:
    """Each kind of problem; `quick` takes few of each, and no large ones."""
    yield _small(20 if quick else 1_000)
    yield _hundred(2 if quick else 200)
    for blocks in list(LIMITS)[: 1 if quick else None]:
        for chain in (True, False):
            yield _large(blocks, chain)
    yield _constrained(100 if quick else 10_000)


def _timed(problem: PlacementProblem, seconds: float = 2.0) -> tuple[float, float]:
    """Return the predicted duration of the best placement, and that of the search."""
    start = time.perf_counter()
    best = solve(problem, seconds=seconds)[0].seconds
    return best, time.perf_counter() - start


def _small(count: int) -> Searches:
    gaps, durations = [], []
    for seed in range(count):
        problem = random_problem(seed, 2 + seed % 13)
        best, duration = _timed(problem)
        gaps.append(best / optimal_seconds(problem, best) - 1)
        durations.append(duration)
    largest, slowest = max(gaps), max(durations)
    return Searches("2 to 14 blocks", count, largest, mean(gaps), slowest, None, None, SMALL_GAP)


def _hundred(count: int) -> Searches:
    gaps, durations = [], []
    for seed in range(count):
        problem = random_problem(seed, 100)
        best, duration = _timed(problem)
        known = min(best, annealed_seconds(problem, _STEPS), _timed(problem, 20.0)[0])
        gaps.append(best / known - 1)
        durations.append(duration)
    largest, slowest = max(gaps), max(durations)
    return Searches("100 blocks", count, largest, mean(gaps), slowest, None, None, LARGE_GAP)


def _large(blocks: int, chain: bool) -> Searches:
    limit = LIMITS[blocks]
    kind = "in a chain" if chain else "in a graph"
    _, duration = _timed(random_problem(0, blocks, chain=chain))
    return Searches(f"{blocks:,} blocks {kind}", 1, None, None, duration, None, None, limit)


def _constrained(count: int) -> Searches:
    violated = unsolved = 0
    durations = []
    for seed in range(count):
        problem = random_problem(seed, 1 + seed % 14, 1 + seed % 5, constraints=True)
        start = time.perf_counter()
        try:
            solutions = solve(problem, seconds=0.2)
        except InfeasibleError:
            solutions = []
            unsolved += 1
        durations.append(time.perf_counter() - start)
        violated += any(violations(problem, each.devices) for each in solutions)
    return Searches("random constraints", count, None, None, max(durations), violated, unsolved, 0)
