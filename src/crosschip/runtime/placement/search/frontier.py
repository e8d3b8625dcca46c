"""Dynamic programme along an order of the blocks.

A state is what the costs of the remaining blocks depend on: where the tensors are that blocks
behind it read, and the device of the last block. For each state the cheapest placement of the
blocks before is kept. The result is the best placement whose segments are consecutive in the order,
if there are never more states than the width; else the states with the least cost so far and
estimated cost to come remain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.costs import Costs
from crosschip.runtime.placement.search.problem import PlacementProblem

_RESULTS = 4
"""The maximum number of placements that a search returns; they differ in the last device."""


def _factors(first: int, count: int) -> Array:
    """Return odd numbers that look random (splitmix64), as `numpy.random` is slow to import."""
    numbers = np.arange(first, first + count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    odd: Array = (numbers ^ (numbers >> np.uint64(31))) | np.uint64(1)
    return odd


_LABEL, _SEGMENTS = _factors(1, 2)
_BYTES = _factors(3, 64)
_COLUMNS = _factors(67, 4096)
"""Factors of the columns of a state in its hash value; of tensors, modulo the number."""


def place_along(
    problem: PlacementProblem,
    costs: Costs,
    order: Sequence[int],
    width: int,
    *,
    limited: bool,
    distinct: bool = False,
) -> list[Array]:
    """Return placements of little cost, the cheapest first; none if no state meets the limits.

    Args:
        problem: the problem.
        costs: the costs to minimise.
        order: the blocks in an executable order.
        width: the maximum number of states after each block.
        limited: whether memory limits and the maximum number of segments hold in each state.
        distinct: whether states differ that only differ in the occupied memory.
    """
    return _Frontier(problem, costs, order, limited, distinct).search(width)


class _Frontier:
    """The states after some of the blocks, and the decisions that lead to them.

    Attributes:
        cost: the cost of each state.
        estimate: the estimated cost to come that depends on the state.
        key: the hash value of each state.
        label: the device and dialect of the last block.
        origin: the device that computed each open tensor, [states, slots].
        delivered: the devices that have each open tensor, as bits, [states, slots].
        segments: the number of segments.
        occupied: the bytes on each device, [states, devices].
    """

    def __init__(
        self,
        problem: PlacementProblem,
        costs: Costs,
        order: Sequence[int],
        limited: bool,
        distinct: bool,
    ) -> None:
        self._problem = problem
        self._costs = costs
        self._distinct = distinct
        self._order = list(order)
        self._devices = np.arange(len(problem.devices))
        self._limits = problem.limits if limited and problem.memory is not None else None
        self._most = problem.max_segments if limited else None
        self._labels = self._devices + np.zeros((problem.blocks, 1), dtype=np.intp)
        if problem.dialects is not None:
            self._labels = self._labels + len(problem.devices) * problem.dialects.astype(np.intp)
        self._plan = Plan(problem, costs, self._order)
        self._history: list[tuple[Array, Array]] = []
        slots = self._plan.slots
        self.cost = np.zeros(1)
        self.estimate = np.zeros(1)
        self.key = np.zeros(1, dtype=np.uint64)
        self.label = np.full(1, -1)
        self.origin = np.full((1, slots), len(problem.devices), dtype=np.int8)
        self.delivered = np.zeros((1, slots), dtype=np.int64)
        self.segments = np.zeros(1, dtype=np.intp)
        self.occupied = np.zeros((1, len(problem.devices)))

    def search(self, width: int) -> list[Array]:
        for block in self._order:
            self._extend(block, width)
            if not len(self.cost):
                return []
        finals = np.argsort(self.cost, kind="stable")[:_RESULTS]
        return [self._trace(int(state)) for state in finals]

    def _extend(self, block: int, width: int) -> None:
        """Place a block on each device in each state, and keep the best states."""
        labels = self._labels[block]
        changes = self.label[:, None] != labels
        cost = self.cost[:, None] + self._costs.blocks[block] + changes * self._costs.launches
        estimate = self.estimate
        key = self.key - _LABEL * self.label.astype(np.uint64)
        bits = 1 << self._devices
        delivering: Array = (_LABEL * labels.astype(np.uint64))[None, :]
        for read in self._plan.reads[block]:
            origin, delivered = self.origin[:, read.slot], self.delivered[:, read.slot]
            transfer = read.costs[origin]
            if read.shared:
                transfer = np.where(delivered[:, None] & bits, 0.0, transfer)
            cost += transfer
            estimate = estimate - read.estimate[origin]
            code = _code(origin, delivered)
            if read.last:
                key = key - read.factor * code
            elif read.shared:
                after = _code(origin[:, None], delivered[:, None] | bits)
                delivering = delivering + read.factor * (after - code[:, None])
        estimates = estimate[:, None] + self._plan.estimates[block]
        for opened in self._plan.opens[block]:
            delivering = delivering + opened.factor * _code(self._devices, bits)
        self._refuse(block, cost, changes)
        keys = key[:, None] + delivering
        if self._most is not None:
            keys = keys + _SEGMENTS * changes.astype(np.uint64)
        if self._distinct and self._limits is not None:
            assert self._problem.memory is not None, "limits come with memory"
            keys = keys + _BYTES[: len(bits)] * self._problem.memory[block].astype(np.uint64)
        self._select(block, cost, estimates, keys, changes, width)

    def _refuse(self, block: int, cost: Array, changes: Array) -> None:
        """Make the states that exceed limits infinitely expensive."""
        if self._most is not None:
            cost[self.segments[:, None] + changes > self._most] = np.inf
        if self._limits is not None:
            assert self._problem.memory is not None, "limits come with memory"
            cost[self.occupied + self._problem.memory[block] > self._limits] = np.inf

    def _select(
        self, block: int, cost: Array, estimates: Array, keys: Array, changes: Array, width: int
    ) -> None:
        """Keep the cheapest of equal states, and of these the cheapest."""
        scores = (cost + estimates).ravel()
        ranked = np.argsort(scores, kind="stable")
        ranked = ranked[: np.searchsorted(scores[ranked], np.inf)][: 4 * width]
        _, first = np.unique(keys.ravel()[ranked], return_index=True)
        first.sort()
        chosen = ranked[first[:width]]
        parent, device = np.divmod(chosen, len(self._devices))
        self._history.append((parent, device))
        self.cost = cost.ravel()[chosen]
        self.estimate = np.broadcast_to(estimates, cost.shape).ravel()[chosen]
        self.key = keys.ravel()[chosen]
        self.label = self._labels[block][device]
        self.segments = self.segments[parent] + changes.ravel()[chosen]
        self.origin, self.delivered = self.origin[parent], self.delivered[parent]
        for read in self._plan.reads[block]:
            if read.shared:
                self.delivered[:, read.slot] |= 1 << device
        for opened in self._plan.opens[block]:
            self.origin[:, opened.slot] = device
            self.delivered[:, opened.slot] = 1 << device
        if self._limits is not None:
            assert self._problem.memory is not None, "limits come with memory"
            self.occupied = self.occupied[parent]
            self.occupied[np.arange(len(device)), device] += self._problem.memory[block][device]

    def _trace(self, state: int) -> Array:
        """Return the decisions that lead to a state."""
        devices = np.empty(len(self._order), dtype=np.intp)
        for block, (parent, device) in zip(
            reversed(self._order), reversed(self._history), strict=True
        ):
            devices[block] = device[state]
            state = int(parent[state])
        return devices


def _code(origin: Array, delivered: Array) -> Array:
    """Return a number for the state of a tensor."""
    return (delivered * 64 + origin).astype(np.uint64)


class Read:
    """The reading of a tensor by a block.

    Attributes:
        slot: the column of the tensor in the states.
        factor: its factor in the hash values.
        costs: the duration of the transfer, [origins, devices].
        estimate: the estimated cost of what depends on the transfer, [origins].
        shared: whether several blocks read the tensor.
        last: whether no later block reads it.
    """

    __slots__ = ("costs", "estimate", "factor", "last", "shared", "slot")

    def __init__(
        self, slot: int, factor: np.uint64, costs: Array, estimate: Array, shared: bool
    ) -> None:
        self.slot = slot
        self.factor = factor
        self.costs = costs
        self.estimate = estimate
        self.shared = shared
        self.last = False


class Plan:
    """The tensors that each block reads and computes, and the columns that they have in the states.

    Attributes:
        reads: for each block, the tensors that it reads.
        opens: for each block, the first reading of each of its tensors.
        estimates: the sum of the estimates of the readings of each block's tensors,
            [blocks, devices].
        slots: the number of columns.
    """

    def __init__(self, problem: PlacementProblem, costs: Costs, order: Sequence[int]) -> None:
        blocks = problem.blocks
        self.reads: list[list[Read]] = [[] for _ in range(blocks)]
        self.opens: list[list[Read]] = [[] for _ in range(blocks)]
        self.estimates = np.zeros((blocks, len(problem.devices)))
        self.slots = 0
        position = {block: index for index, block in enumerate(order)}
        readings: dict[int, list[tuple[int, Read]]] = {}
        estimates = _estimates(problem, costs, self.estimates)
        transfers, count = problem.transfers, len(problem.devices)
        for pair, estimate in estimates.items():
            tensor, reader = int(transfers.tensor[pair]), int(transfers.reader[pair])
            factor = _COLUMNS[tensor % len(_COLUMNS)]
            read = Read(0, factor, transfers.costs[tensor][:, :count], estimate, False)
            self.reads[reader].append(read)
            readings.setdefault(tensor, []).append((position[reader], read))
        self._assign_slots(readings, transfers.sources.tolist(), order)

    def _assign_slots(
        self,
        readings: dict[int, list[tuple[int, Read]]],
        sources: list[int],
        order: Sequence[int],
    ) -> None:
        """Give each tensor a column, which others use after its last reading."""
        opened: list[list[int]] = [[] for _ in range(len(order) + 1)]
        position = {block: index for index, block in enumerate(order)}
        for tensor in readings:
            opened[position.get(sources[tensor], -1) + 1].append(tensor)
        released: list[list[int]] = [[] for _ in range(len(order) + 1)]
        free: list[int] = []
        for step, tensors in enumerate(opened):
            for tensor in tensors:
                slot = free.pop() if free else self.slots
                self.slots = max(self.slots, slot + 1)
                all_reads = sorted(readings[tensor], key=lambda entry: entry[0])
                for _, read in all_reads:
                    read.slot, read.shared = slot, len(all_reads) > 1
                all_reads[-1][1].last = True
                if step:
                    self.opens[order[step - 1]].append(all_reads[0][1])
                released[all_reads[-1][0]].append(slot)
            # Block `step` reads before it opens its own tensors: its slots are free from then on.
            free.extend(released[step])


def _estimates(problem: PlacementProblem, costs: Costs, sums: Array) -> dict[int, Array]:
    """Return the estimated cost that follows from the origin of a tensor, for pairs of transfers.

    A block's cost and those of all that follow it are divided among the tensors that it reads.

    Args:
        problem: the problem.
        costs: the costs.
        sums: receives the sum over the tensors of each block, [blocks, devices].
    """
    transfers, count = problem.transfers, len(problem.devices)
    wanted = costs.tensors[transfers.tensor] & (transfers.reader < problem.blocks)
    pairs = np.flatnonzero(wanted)
    inputs = np.bincount(transfers.reader[pairs], minlength=problem.blocks)
    launches = costs.launches * (1 - np.eye(count + 1, count))
    estimates: dict[int, Array] = {}
    by_reader = pairs[np.argsort(transfers.reader[pairs], kind="stable")[::-1]]
    for pair in by_reader.tolist():
        reader, source = transfers.reader[pair], transfers.source[pair]
        tensor = transfers.tensor[pair]
        following = (costs.blocks[reader] + sums[reader] + launches) / inputs[reader]
        estimate = (transfers.costs[tensor][:, :count] + following).min(axis=1)
        estimate[~np.isfinite(estimate)] = 0.0
        estimates[pair] = estimate
        if source < problem.blocks:
            sums[source] += estimate[:count]
    return estimates
