"""What local search compares: first how far constraints are exceeded, then the predicted time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.problem import PlacementProblem


class Score(NamedTuple):
    """The value of a placement; less is better.

    Attributes:
        excess: the bytes above memory limits, each as a part of its limit, plus the number of
            segments above the maximum; zero if the constraints are met.
        seconds: the predicted duration of one run.
        segments: the number of segments.
    """

    excess: float
    seconds: float
    segments: int

    def improves(self, other: Score) -> bool:
        """Return whether it is better by more than rounding errors."""
        if self.excess != other.excess:
            return self.excess < other.excess - 1e-12
        return self.seconds < other.seconds * (1 - 1e-12)


class Objective:
    """The exact objective and the constraints of a problem.

    Attributes:
        problem: the problem.
        budget: the task visits of the exact search for the fewest segments; without them, there
            may be more segments than compilation cuts.
    """

    def __init__(self, problem: PlacementProblem, budget: int) -> None:
        self.problem = problem
        self.budget = budget
        self._limits = problem.limits
        self._limited = problem.memory is not None and bool(np.isfinite(self._limits).any())

    @property
    def constrained(self) -> bool:
        """Whether there are limits of memory or segments."""
        return self._limited or self.problem.max_segments is not None

    def has_too_many_segments(self, score: Score) -> bool:
        """Return whether there are more segments than the maximum."""
        most = self.problem.max_segments
        return most is not None and score.segments > most

    def score(self, devices: Array) -> Score:
        """Return the score of a placement."""
        return self.score_from(devices, self.problem.seconds_without_launches(devices))

    def score_from(self, devices: Array, seconds: float) -> Score:
        """Return the score of a placement, whose duration without launches is known."""
        problem = self.problem
        segments = problem.segments(devices, self.budget)
        excess = self.memory_excess(problem.occupied(devices)) if self._limited else 0.0
        if problem.max_segments is not None:
            excess += max(0, len(segments) - problem.max_segments)
        launches = problem.seconds_of_launches(devices, segments)
        return Score(excess, seconds + launches, len(segments))

    def memory_excess(self, occupied: Array) -> float:
        """Return the sum of the bytes above each limit, as parts of the limits."""
        return float((np.maximum(occupied - self._limits, 0.0) / np.maximum(self._limits, 1)).sum())

    def move_excess(self, devices: Array) -> Array:
        """Return what each move of one block adds to the excess of memory, [blocks, devices]."""
        problem = self.problem
        if not self._limited:
            return np.zeros(problem.seconds.shape)
        assert problem.memory is not None, "limits come with memory"
        limits = np.maximum(self._limits, 1)
        room = problem.occupied(devices) - self._limits
        own = np.take_along_axis(problem.memory, devices[:, None], axis=1)[:, 0]
        over = np.maximum(room, 0.0)
        removed = (np.maximum(room[devices] - own, 0.0) - over[devices]) / limits[devices]
        added = (np.maximum(room + problem.memory, 0.0) - over) / limits
        difference: Array = added + removed[:, None]
        difference[np.arange(problem.blocks), devices] = 0.0
        return difference
