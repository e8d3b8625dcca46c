"""Local improvement of a placement by the exact objective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.costs import Deadline
from crosschip.runtime.placement.search.moves import move_seconds
from crosschip.runtime.placement.search.objective import Objective, Score

_EPSILON = 1e-15
"""The seconds, and the part of a limit, below which a difference is a rounding error."""


class LocalSearch:
    """Moves of blocks, connected blocks and segments to other devices.

    Attributes:
        visits: the number of blocks in the placements that may still be scored.
    """

    def __init__(self, objective: Objective, visits: int, deadline: Deadline) -> None:
        self._objective = objective
        self._problem = objective.problem
        self._deadline = deadline
        self.visits = visits

    @property
    def over(self) -> bool:
        """Whether the search must end."""
        return self.visits <= 0 or self._deadline()

    def improve(self, devices: Array) -> tuple[Array, Score]:
        """Return a placement that no move makes better, or the best when the search must end."""
        score = self._score(devices)
        while not self.over:
            moves = [self._best_block_move, self._best_group_move]
            if self._objective.has_too_many_segments(score):
                moves.reverse()  # a single block rarely takes away a segment
            better = moves[0](devices, score) or moves[1](devices, score)
            if better is None:
                break
            devices, score = better
        return devices, score

    def _score(self, devices: Array, seconds: float | None = None) -> Score:
        self.visits -= self._problem.blocks
        if seconds is None:
            return self._objective.score(devices)
        return self._objective.score_from(devices, seconds)

    def _best_block_move(self, devices: Array, score: Score) -> tuple[Array, Score] | None:
        """Return the first improving move of one block, the most promising first."""
        problem = self._problem
        seconds = move_seconds(problem, devices)
        base = problem.seconds_without_launches(devices)
        for move in self._promising_moves(devices, score, seconds).tolist():
            block, device = divmod(move, len(problem.devices))
            candidate = devices.copy()
            candidate[block] = device
            candidate_score = self._score(candidate, base + seconds[block, device])
            if candidate_score.improves(score):
                return candidate, candidate_score
            if self.over:
                break
        return None

    def _promising_moves(self, devices: Array, score: Score, seconds: Array) -> Array:
        """Return the indices of moves that may improve a placement, the most promising first.

        Args:
            devices: the placement.
            score: its score.
            seconds: what each move adds to the duration without launches, [blocks, devices].
        """
        problem, launches = self._problem, self._problem.launch_seconds
        excess = self._objective.move_excess(devices)
        # A move takes away at most one launch on each of the two devices, and two segments.
        least = seconds - launches[devices][:, None] - launches
        least[np.arange(problem.blocks), devices] = np.inf
        promising = (excess < -_EPSILON) | ((least < -_EPSILON) & (excess < _EPSILON))
        if self._objective.has_too_many_segments(score):
            promising = excess <= 2
        index = np.flatnonzero(promising & np.isfinite(least))
        least, excess = least.ravel()[index], excess.ravel()[index]
        if score.excess > 0:
            # What is paid for each part of the excess that disappears.
            least = np.maximum(least, 0) / np.maximum(-excess, 1e-9)
        return index[np.argsort(least, kind="stable")]

    def _best_group_move(self, devices: Array, score: Score) -> tuple[Array, Score] | None:
        """Return the first improving move of several blocks to another device."""
        problem = self._problem
        most = float(problem.launch_seconds.max(initial=0.0)) * score.segments
        for group in self._groups(devices):
            for device in range(len(problem.devices)):
                if device == devices[group[0]] or np.isinf(problem.seconds[group, device]).any():
                    continue
                candidate = devices.copy()
                candidate[group] = device
                seconds = problem.seconds_without_launches(candidate)
                if score.excess == 0 and seconds - most > score.seconds:
                    continue
                candidate_score = self._score(candidate, seconds)
                if candidate_score.improves(score):
                    return candidate, candidate_score
                if self.over:
                    return None
        return None

    def _groups(self, devices: Array) -> Iterator[Sequence[int]]:
        """Yield segments, connected blocks of one device, and all blocks of each device."""
        segments = [list(run) for run in self._problem.segments(devices, self._objective.budget)]
        yielded = set()
        components = connected(devices, self._problem.transfers.readers)
        by_device = [np.flatnonzero(devices == device).tolist() for device in np.unique(devices)]
        for group in [*segments, *components, *by_device]:
            if len(group) > 1 and tuple(group) not in yielded:
                yielded.add(tuple(group))
                yield group


def free_memory(objective: Objective, devices: Array) -> Array:
    """Return a placement with blocks moved from devices above their memory limit to others.

    The blocks that move are those that become slowest by the least for each byte. Devices may stay
    above their limit if no moves help.
    """
    problem, memory = objective.problem, objective.problem.memory
    if memory is None:
        return devices
    devices = devices.copy()
    room = problem.limits - problem.occupied(devices)
    for device in np.flatnonzero(room < 0).tolist():
        seconds = move_seconds(problem, devices)
        blocks = np.flatnonzero((devices == device) & (memory[:, device] > 0))
        ratios = np.maximum(seconds[blocks], 0) / memory[blocks, device][:, None]
        ratios[:, device] = np.inf
        for move in np.argsort(ratios, axis=None, kind="stable").tolist():
            row, target = divmod(move, len(problem.devices))
            block = blocks[row]
            if room[device] >= 0 or np.isinf(ratios[row, target]):
                break
            if devices[block] == device and memory[block, target] <= room[target]:
                devices[block] = target
                room[device] += memory[block, device]
                room[target] -= memory[block, target]
    return devices


def connected(devices: Array, readers: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the sets of blocks of one device that are connected by tensors between them."""
    leader = list(range(len(readers)))

    def find(block: int) -> int:
        while leader[block] != block:
            leader[block] = leader[leader[block]]
            block = leader[block]
        return block

    assigned = devices.tolist()
    for block, others in enumerate(readers):
        for reader in others:
            if assigned[block] == assigned[reader]:
                leader[find(reader)] = find(block)
    components: dict[int, list[int]] = {}
    for block in range(len(readers)):
        components.setdefault(find(block), []).append(block)
    return list(components.values())
