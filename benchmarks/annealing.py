"""Simulated annealing of placements: the reference where the optimum is not known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.problem import PlacementProblem

_FINAL = 1e-3
"""The last temperature, as a part of the first."""

_ROUNDS = 2
"""The number of times that the temperature falls, the second time from the best placement."""


def annealed_seconds(problem: PlacementProblem, steps: int, seed: int = 0) -> float:
    """Return the least predicted duration that simulated annealing reaches.

    Each step moves one block, or some connected blocks, to the device of a neighbor or to a random
    one. Memory limits and the maximum number of segments do not count.

    Args:
        problem: the problem.
        steps: the number of steps.
        seed: the seed of the random numbers.
    """
    random = np.random.default_rng(seed)
    neighbors: list[list[int]] = [[] for _ in range(problem.blocks)]
    for block, readers in enumerate(problem.transfers.readers):
        neighbors[block] += readers
        for reader in readers:
            neighbors[reader].append(block)
    best = problem.seconds.argmin(axis=1)
    best_seconds = _seconds(problem, best)
    for _ in range(_ROUNDS):
        devices, seconds = best.copy(), best_seconds
        temperature = best_seconds / problem.blocks
        cooling = _FINAL ** (_ROUNDS / steps)
        for _ in range(steps // _ROUNDS):
            temperature *= cooling
            candidate = _moved(random, problem, neighbors, devices)
            candidate_seconds = _seconds(problem, candidate)
            gain = seconds - candidate_seconds
            if gain >= 0 or random.random() < math.exp(gain / temperature):
                devices, seconds = candidate, candidate_seconds
            if seconds < best_seconds:
                best, best_seconds = devices, seconds
    return problem.predicted_seconds(best)


def _seconds(problem: PlacementProblem, devices: Array) -> float:
    """Return the predicted duration, with segments as the greedy order cuts them."""
    segments = problem.segments(devices, budget=0)
    return problem.seconds_without_launches(devices) + problem.seconds_of_launches(
        devices, segments
    )


def _moved(
    random: np.random.Generator,
    problem: PlacementProblem,
    neighbors: Sequence[Sequence[int]],
    devices: Array,
) -> Array:
    """Return a placement with one or more connected blocks on another device."""
    block = int(random.integers(problem.blocks))
    near = [int(devices[neighbor]) for neighbor in neighbors[block]]
    count = len(problem.devices)
    device = int(random.choice(near) if near and random.random() < 0.7 else random.integers(count))
    size = int(random.geometric(0.5))
    group, reached = set[int](), [block]
    while reached and len(group) < size:
        group.add(reached.pop(int(random.integers(len(reached)))))
        reached = [each for member in sorted(group) for each in neighbors[member]]
        reached = [each for each in reached if each not in group]
    moved = devices.copy()
    members = [member for member in group if np.isfinite(problem.seconds[member, device])]
    moved[members] = device
    return moved
