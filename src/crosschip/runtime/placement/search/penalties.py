"""Lagrange multipliers: penalties for each byte and segment that make a search keep limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.costs import Costs
from crosschip.runtime.placement.search.objective import Score
from crosschip.runtime.placement.search.problem import PlacementProblem

_ROUNDS = 12


class Penalties:
    """Penalties between those at which a limit was exceeded and those at which it was kept.

    The last entry of each array is that of segments; the others are those of the devices' bytes.
    """

    def __init__(self, problem: PlacementProblem) -> None:
        self._problem = problem
        count = len(problem.devices)
        finite = np.where(np.isfinite(problem.seconds), problem.seconds, 0.0)
        whole = float(finite.max(axis=1).sum()) + float(problem.launch_seconds.sum())
        self._step = np.full(count + 1, whole / max(1, problem.blocks))
        if problem.memory is not None:
            self._step[:count] = whole / np.maximum(problem.memory.sum(axis=0), 1)
        self._low = np.zeros(count + 1)
        self._high = np.full(count + 1, np.inf)
        self._value = np.zeros(count + 1)

    def costs(self) -> Costs:
        """Return the problem's costs with the penalties."""
        return Costs.of(self._problem, self._value[:-1], float(self._value[-1]))

    def rounds(self) -> Iterator[Costs]:
        """Yield costs with penalties; call `update` with the placement of each."""
        for _ in range(_ROUNDS):
            yield self.costs()

    def update(self, devices: Array, score: Score) -> None:
        """Raise the penalties of limits that a placement exceeds, and lower those of others."""
        most = self._problem.max_segments
        exceeded = np.append(
            self._problem.occupied(devices) > self._problem.limits,
            most is not None and score.segments > most,
        )
        self._low = np.where(exceeded, self._value, self._low)
        self._high = np.where(exceeded, self._high, np.minimum(self._high, self._value))
        # What keeps one limit may exceed another: a bound that was wrong is given up.
        self._high = np.where(self._high <= self._low, np.inf, self._high)
        raised = np.maximum(2 * self._low, np.where(exceeded, self._step / 8, 0.0))
        halved = (self._low + np.where(np.isinf(self._high), 0.0, self._high)) / 2
        self._value = np.where(np.isinf(self._high), raised, halved)
