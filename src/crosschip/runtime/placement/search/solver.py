"""The search for the placements of least predicted time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.runs import SEARCH_BUDGET
from crosschip.runtime.placement.search.chain import is_chain, place_chain
from crosschip.runtime.placement.search.costs import Costs
from crosschip.runtime.placement.search.cuts import place_by_cuts
from crosschip.runtime.placement.search.frontier import place_along
from crosschip.runtime.placement.search.infeasibility import check_feasible, explain_excess
from crosschip.runtime.placement.search.local import LocalSearch, free_memory
from crosschip.runtime.placement.search.objective import Objective, Score
from crosschip.runtime.placement.search.penalties import Penalties
from crosschip.runtime.placement.search.problem import PlacementProblem, Solution

_MOST_BLOCKS = 5_000
"""The maximum number of blocks for dynamic programming and local search."""

_MANY_BLOCKS = 20_000
"""The number of blocks above which minimum cuts search for one placement only."""

_ROUNDS = 2
"""The maximum number of expansions of each device by minimum cuts."""

_EXTRA_LAUNCHES = (0.0, 1.0, 3.0)
"""How many launches more each segment costs, so that some placements have few."""

_DIFFERENCE = 0.03
"""The part of the time that blocks take that differ between two solutions, if possible."""

_MOST_STATES = 300
"""The maximum number of states after each block of a dynamic programme."""

_STATES = 40_000
"""The number of states and blocks of a dynamic programme, in all."""

_BOUNDARIES = (0.5, 1.0, 0.0)
"""The parts of a launch that minimum cuts add to each transfer between devices."""

_STARTS = 6
"""The number of placements that are improved."""

_FAILURES = 1_200
"""The number of blocks in the orders without improvement after which the search ends."""

_VISITS_PER_SECOND = 150_000
"""The number of blocks in the placements that local search scores, for each second."""

_MORE_VISITS = 3
"""The factor of the visits that follow if no placement meets the limits."""

_VISITS_OF_STEP = 70
"""The number of blocks whose scoring takes as long as a step of dynamic programming."""

_LOCAL_BUDGET = 1_000
"""The task visits of the search for the fewest segments in local search."""


def solve(problem: PlacementProblem, *, count: int = 3, seconds: float = 2.0) -> list[Solution]:
    """Return different placements that meet the constraints, the best first.

    Predictions have errors, so the others than the best are not those next to it: they place blocks
    of at least 3 % of the time on other devices than each better one, if there are enough such
    placements. The search is deterministic unless the time ends before the work that belongs to it.

    Args:
        problem: the problem.
        count: the maximum number of placements.
        seconds: the time that the search may take, approximately.

    Raises:
        InfeasibleError: no placement meets the constraints, or none was found.
    """
    if not problem.blocks:
        return [Solution((), problem.predicted_seconds(()), 0)]
    check_feasible(problem)
    return _Search(problem, seconds).solve(count)


def executable_order(readers: Sequence[Sequence[int]], priorities: Sequence[float]) -> list[int]:
    """Return a topological order in which ready blocks of lower priority numbers come first."""
    waiting = [0] * len(readers)
    for others in readers:
        for reader in others:
            waiting[reader] += 1
    ready = [(priorities[block], block) for block, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, block = heapq.heappop(ready)
        order.append(block)
        for reader in readers[block]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heapq.heappush(ready, (priorities[reader], reader))
    return order


class _Search:
    """The placements of a problem that were found so far, by their devices."""

    def __init__(self, problem: PlacementProblem, seconds: float) -> None:
        end = time.monotonic() + seconds
        self._deadline: Callable[[], bool] = lambda: time.monotonic() > end
        self._problem = problem
        self._costs = self._penalized = Costs.of(problem)
        self._chain = is_chain(problem, self._costs)
        small = problem.blocks <= _MOST_BLOCKS
        self._objective = Objective(problem, _LOCAL_BUDGET if small else SEARCH_BUDGET)
        self._visits = int(_VISITS_PER_SECOND * seconds)
        self._local = LocalSearch(self._objective, self._visits, self._deadline)
        self._width = max(8, min(_MOST_STATES, _STATES // problem.blocks))
        self._candidates: dict[bytes, tuple[Score, Array]] = {}
        self._reorders = not self._chain and problem.blocks <= _MOST_BLOCKS

    def solve(self, count: int) -> list[Solution]:
        singles = sorted(self._single_devices(), key=self._problem.seconds_without_launches)
        for devices in singles if self._problem.blocks <= _MOST_BLOCKS else singles[:2]:
            self._add(devices)
        for devices in self._starts(singles[0]):
            self._add(devices)
        if self._fastest()[0][0].excess > 0:
            self._penalize()
        self._improve()
        if self._best()[0][0].excess > 0:
            self._local.visits = _MORE_VISITS * self._visits
            self._improve()
        if self._best()[0][0].excess > 0:
            self._enumerate()
        return self._solutions(count)

    def _add(self, devices: Array) -> Score:
        """Add a placement, and return its score."""
        key = devices.tobytes()
        if key not in self._candidates:
            self._candidates[key] = self._objective.score(devices), devices
        return self._candidates[key][0]

    def _fastest(self) -> list[tuple[Score, Array]]:
        """Return the placements by predicted duration, whatever limits they exceed."""
        return sorted(self._candidates.values(), key=lambda candidate: candidate[0].seconds)

    def _best(self) -> list[tuple[Score, Array]]:
        """Return the placements, the best first."""
        return sorted(self._candidates.values(), key=lambda candidate: candidate[0])

    def _single_devices(self) -> list[Array]:
        """Return a placement for each device with as much on it as possible."""
        fastest = self._costs.blocks.argmin(axis=1)
        devices = range(len(self._problem.devices))
        allowed = np.isfinite(self._problem.seconds)
        return [np.where(allowed[:, device], device, fastest) for device in devices]

    def _starts(self, start: Array) -> list[Array]:
        """Return good placements that need not keep the limits.

        Args:
            start: the placement that minimum cuts start from.
        """
        problem = self._problem
        launch = float(problem.launch_seconds.max())
        costs = [Costs.of(problem, None, factor * launch) for factor in _EXTRA_LAUNCHES]
        if self._chain:
            return [devices for each in costs for devices in place_chain(problem, each)]
        cuts = self._cuts(start)
        if problem.blocks > _MOST_BLOCKS:
            return cuts
        order = range(problem.blocks)
        return [*cuts, *(devices for each in costs for devices in self._along(order, each))]

    def _along(self, order: Sequence[int], costs: Costs, *, limited: bool = False) -> list[Array]:
        self._local.visits -= _VISITS_OF_STEP * self._problem.blocks
        return place_along(self._problem, costs, order, self._width, limited=limited)

    def _along_limited(self, order: Sequence[int]) -> list[Array]:
        """Return placements that meet the limits, or come closer while none meets them."""
        if not self._objective.constrained:
            return self._along(order, self._costs)
        if self._best()[0][0].excess > 0:
            return self._along(order, self._penalized)
        return self._along(order, self._costs, limited=True)

    def _cuts(self, start: Array) -> list[Array]:
        """Return placements by minimum cuts."""
        blocks = self._problem.blocks
        cuts = 3 if blocks <= _MOST_BLOCKS else 2 if blocks <= _MANY_BLOCKS else 1
        return [
            place_by_cuts(self._problem, self._costs, start, boundary, _ROUNDS, self._deadline)
            for boundary in _BOUNDARIES[:cuts]
        ]

    def _penalize(self) -> None:
        """Add placements that keep limits by penalties, and those that keep them in each step."""
        for _, devices in self._fastest()[:_STARTS]:
            self._add(free_memory(self._objective, devices))
        penalties = Penalties(self._problem)
        for costs in penalties.rounds():
            if self._deadline():
                break
            placements = self._with_penalties(costs)
            for devices in placements:
                self._add(devices)
                self._add(free_memory(self._objective, devices))
            if not placements:
                break
            penalties.update(placements[0], self._add(placements[0]))
        self._penalized = penalties.costs()
        if self._problem.blocks <= _MOST_BLOCKS:
            for costs in (self._penalized, self._costs):
                order = range(self._problem.blocks)
                for devices in self._along(order, costs, limited=True):
                    self._add(devices)

    def _with_penalties(self, costs: Costs) -> list[Array]:
        if self._chain:
            return place_chain(self._problem, costs)
        if self._problem.blocks <= _MOST_BLOCKS:
            order, width = range(self._problem.blocks), max(8, self._width // 4)
            return place_along(self._problem, costs, order, width, limited=False)
        start = self._best()[0][1]
        return [place_by_cuts(self._problem, costs, start, 0.5, 1, self._deadline)]

    def _improve(self) -> None:
        """Improve the best placements, and then the best one along other orders."""
        optimal = self._chain and not self._objective.constrained
        if optimal or (self._problem.blocks > _MOST_BLOCKS and not self._chain):
            return
        for _, devices in self._best()[:_STARTS]:
            self._descend(devices)
        if self._reorders:
            self._improve_in_other_orders()

    def _improve_in_other_orders(self) -> None:
        """Improve the best placement by dynamic programming along orders near that of its segments.

        Blocks that could move to a later or earlier segment do so in some of them.
        """
        random = np.random.default_rng(0)
        failures = 0
        most = min(3 * self._problem.blocks, max(4, _FAILURES // self._problem.blocks))
        while failures < most and not self._local.over:
            score, devices = self._best()[0]
            order = self._order(devices, random.normal(0, 1, self._problem.blocks))
            for better in self._along_limited(order)[:1]:
                if better.tobytes() not in self._candidates:
                    self._descend(better)
            failures = 0 if self._best()[0][0].improves(score) else failures + 1

    def _order(self, devices: Array, noise: Array) -> list[int]:
        """Return an executable order by the segment of each block plus noise."""
        segments = self._problem.segments(devices, _LOCAL_BUDGET)
        ranks = noise.copy()
        for number, segment in enumerate(segments):
            ranks[list(segment)] += number
        return executable_order(self._problem.transfers.readers, ranks.tolist())

    def _descend(self, devices: Array) -> None:
        """Improve a placement by moves, and by dynamic programming along its segments."""
        while not self._local.over:
            devices, score = self._local.improve(devices)
            self._add(devices)
            better = min(self._reordered(devices), key=self._add, default=devices)
            if not self._add(better).improves(score):
                break
            devices = better

    def _reordered(self, devices: Array) -> list[Array]:
        """Return the best placements with the segments of a placement as the order."""
        if not self._reorders:
            return []
        segments = self._problem.segments(devices, _LOCAL_BUDGET)
        order = [block for segment in segments for block in segment]
        return self._along_limited(order)

    def _enumerate(self) -> None:
        """Search for any placement that meets the limits, among many more states."""
        blocks = self._problem.blocks
        width = min(20 * _MOST_STATES, 10 * _STATES // blocks)
        if blocks <= _MOST_BLOCKS:
            for devices in place_along(
                self._problem, self._costs, range(blocks), width, limited=True, distinct=True
            ):
                self._add(devices)

    def _solutions(self, count: int) -> list[Solution]:
        """Return the best placements by the exact objective.

        Raises:
            InfeasibleError: none meets the constraints.
        """
        best = self._best()
        if best[0][0].excess > 0:
            raise explain_excess(self._problem, *best[0])
        small = self._problem.blocks <= _MOST_BLOCKS
        objective = Objective(self._problem, SEARCH_BUDGET)
        exact = [
            (objective.score(devices) if small else score, devices)
            for score, devices in self._different(count)
        ]
        exact.sort(key=lambda candidate: candidate[0])
        return [
            Solution(tuple(devices.tolist()), score.seconds, score.segments)
            for score, devices in exact
        ]

    def _different(self, count: int) -> list[tuple[Score, Array]]:
        """Return the best placements that differ in blocks of some time, then the best others."""
        allowed = [candidate for candidate in self._best() if candidate[0].excess == 0]
        index = np.arange(self._problem.blocks)
        chosen: list[tuple[Score, Array]] = []
        similar: list[tuple[Score, Array]] = []
        for score, devices in allowed:
            seconds = self._problem.seconds[index, devices]
            least = _DIFFERENCE * score.seconds
            if all(seconds[devices != other].sum() >= least for _, other in chosen):
                chosen.append((score, devices))
            else:
                similar.append((score, devices))
            if len(chosen) == count:
                break
        return [*chosen, *similar][:count]
