"""What each block would cost on the other devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.runtime.placement.search.moves import move_seconds, move_transfers
from crosschip.runtime.placement.search.problem import Alternative, PlacementProblem, Solution

_BUDGET = 1_000
"""The task visits of each search for the fewest segments."""

_MOST_BLOCKS = 2_000
"""The maximum number of blocks for which launches count, as segments must be cut for each."""


def alternatives(problem: PlacementProblem, solution: Solution) -> Sequence[Sequence[Alternative]]:
    """Return, for each block, what changes if it alone runs on each other device.

    Launches count, with segments cut anew, in problems of up to 2,000 blocks.
    """
    devices = np.array(solution.devices, dtype=np.intp)
    seconds = move_seconds(problem, devices)
    transfers = move_transfers(problem, devices)
    cut = problem.blocks <= _MOST_BLOCKS
    launches = (
        problem.seconds_of_launches(devices, problem.segments(devices, _BUDGET)) if cut else 0.0
    )
    result = []
    for block, assigned in enumerate(solution.devices):
        others = []
        for device in range(len(problem.devices)):
            if device == assigned:
                continue
            difference = float(seconds[block, device])
            if cut and np.isfinite(difference):
                devices[block] = device
                segments = problem.segments(devices, _BUDGET)
                difference += problem.seconds_of_launches(devices, segments) - launches
                devices[block] = assigned
            others.append(Alternative(device, difference, round(transfers[block, device])))
        result.append(others)
    return result
