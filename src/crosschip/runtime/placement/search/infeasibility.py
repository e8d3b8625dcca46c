"""The reasons why no placement meets the constraints."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.objective import Score
from crosschip.runtime.placement.search.problem import InfeasibleError, PlacementProblem


def check_feasible(problem: PlacementProblem) -> None:
    """Raise an error if a constraint obviously cannot be met.

    Raises:
        InfeasibleError: no device may run a block, the blocks that only one device may run exceed
            its memory, or all blocks exceed the memory of all devices.
    """
    allowed = np.isfinite(problem.seconds)
    refused = np.flatnonzero(~allowed.any(axis=1))
    if len(refused):
        raise InfeasibleError(f"no device may run block {refused[0]}, and {len(refused)} in all")
    if problem.max_segments is not None and problem.max_segments < 1:
        raise InfeasibleError("max_segments is less than 1")
    if problem.memory is None:
        return
    only = allowed.sum(axis=1) == 1
    for device, name in enumerate(problem.devices):
        limit = problem.memory_limits.get(name)
        blocks = only & allowed[:, device]
        needed = int(problem.memory[blocks, device].sum())
        if limit is not None and needed > limit:
            raise InfeasibleError(
                f"{name}: {int(blocks.sum())} blocks that no other device may run need "
                f"{needed:,} bytes, {needed - limit:,} more than its limit of {limit:,}"
            )
    least = int(np.where(allowed, problem.memory, np.inf).min(axis=1).sum())
    total = problem.limits.sum()
    if least > total:
        raise InfeasibleError(
            f"the blocks need at least {least:,} bytes, {least - int(total):,} more than the "
            f"memory limits of all devices"
        )


def explain_excess(problem: PlacementProblem, score: Score, devices: Array) -> InfeasibleError:
    """Return an error that says what the best placement found exceeds."""
    reasons = []
    for name, occupied, limit in zip(
        problem.devices, problem.occupied(devices).tolist(), problem.limits.tolist(), strict=True
    ):
        if occupied > limit:
            reasons.append(
                f"{name} would need {int(occupied):,} bytes, {int(occupied - limit):,} more than "
                f"its limit of {int(limit):,}"
            )
    if problem.max_segments is not None and score.segments > problem.max_segments:
        reasons.append(
            f"there would be {score.segments} segments, more than the maximum of "
            f"{problem.max_segments}"
        )
    return InfeasibleError(f"no placement that meets all limits was found: {'; '.join(reasons)}")
