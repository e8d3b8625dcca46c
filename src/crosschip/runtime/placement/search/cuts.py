"""Placement by minimum cuts: one cut for two devices, α-expansions for more.

An expansion offers a device to all blocks at once, and a minimum cut finds the blocks that should
take it. Blocks and transfers count exactly if two devices are allowed; with more, a transfer that
would become cheaper when the tensor's source takes the device counts as if it did not, so an
expansion never makes the placement worse. (Boykov, Veksler, Zabih: Fast approximate energy
minimization via graph cuts, 2001.)
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.costs import Costs, Deadline
from crosschip.runtime.placement.search.problem import PlacementProblem

_CAPACITY = 2**29
"""The sum of all finite capacities; capacities and flows are sums in 32 bits."""

_INFINITE = 2 * _CAPACITY
"""The capacity in place of an infinite one, which no minimum cut contains."""


def place_by_cuts(
    problem: PlacementProblem,
    costs: Costs,
    devices: Array,
    boundary: float,
    rounds: int,
    deadline: Deadline,
) -> Array:
    """Return a placement that no expansion of a device makes cheaper.

    Args:
        problem: the problem.
        costs: the costs; memory and segments count only by penalties.
        devices: the placement to start from, which gives each block an allowed device.
        boundary: the part of a launch that each transfer to another device causes.
        rounds: the maximum number of expansions of each device.
        deadline: whether to stop.
    """
    count = len(problem.devices)
    launches = np.append(costs.launches, 0.0) * boundary * (1 - np.eye(count + 1))
    launches[count] = 0.0
    transfers = problem.transfers.costs + launches
    unchanged = 0
    for expansion in range(rounds * count):
        moved = _Expansion(problem, costs, transfers, devices, expansion % count).moved()
        unchanged = 0 if moved.any() else unchanged + 1
        devices = np.where(moved, expansion % count, devices)
        if unchanged == count or deadline():
            break
    return devices


class _Expansion:
    """The graph whose minimum cut has the blocks that should move to a device on the sink's side.

    The nodes are the blocks, then an auxiliary node for each tensor and device that reads it.

    Args:
        problem: the problem.
        costs: the costs.
        transfers: the costs of transfers, [tensors, devices + 1, devices + 1].
        devices: the device of each block.
        device: the device that is offered.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        costs: Costs,
        transfers: Array,
        devices: Array,
        device: int,
    ) -> None:
        self._host = problem.blocks
        self._devices = devices
        self._device = device
        self._transfers = transfers
        self._locations = np.append(devices, len(problem.devices))
        pairs = costs.tensors[problem.transfers.tensor]
        pairs &= problem.transfers.reader != self._host
        self._tensor = problem.transfers.tensor[pairs]
        self._source = problem.transfers.source[pairs]
        self._reader = problem.transfers.reader[pairs]
        self._graph = _Graph(problem.blocks)
        self._add_blocks(costs.blocks)
        self._add_moving_readers()
        self._add_staying_readers()

    def moved(self) -> Array:
        """Return the blocks that should move, as a mask."""
        moved: Array = self._graph.sink_side() & (self._devices != self._device)
        return moved

    def _add_blocks(self, blocks: Array) -> None:
        """Add what each block gains or loses on the device."""
        index = np.arange(self._host)
        here, there = blocks[index, self._devices], blocks[:, self._device]
        already = self._devices == self._device
        fixed = already | ~np.isfinite(there)
        change = np.where(fixed, 0.0, there - here)
        self._graph.add_source(index, np.maximum(change, 0.0))
        self._graph.add_sink(index, np.maximum(-change, 0.0))
        self._graph.add_source(index[fixed & ~already])
        self._graph.add_sink(index[already])

    def _add_moving_readers(self) -> None:
        """Add the transfer of each tensor to the device if a reader moves and the source stays."""
        _, first, group = np.unique(self._tensor, return_index=True, return_inverse=True)
        nodes = self._graph.add_nodes(len(first))
        tensor, source = self._tensor[first], self._source[first]
        cost = self._transfers[tensor, self._locations[source], self._device]
        inner = source < self._host
        self._graph.add_arcs(source[inner], nodes[inner], cost[inner])
        self._graph.add_source(nodes[~inner], cost[~inner])
        self._graph.add_arcs(nodes[group], self._reader)

    def _add_staying_readers(self) -> None:
        """Add the transfers to other devices while a reader stays, and more if the source moves."""
        staying = self._devices[self._reader] != self._device
        tensor, reader = self._tensor[staying], self._reader[staying]
        destination = self._devices[reader]
        pairs = tensor * len(self._transfers[0]) + destination
        _, first, group = np.unique(pairs, return_index=True, return_inverse=True)
        nodes = self._graph.add_nodes(len(first))
        self._graph.add_arcs(reader, nodes[group])
        tensor, destination = tensor[first], destination[first]
        source = self._source[staying][first]
        now = self._transfers[tensor, self._locations[source], destination]
        self._graph.add_sink(nodes, now)
        further = self._transfers[tensor, self._device, destination] - now
        dearer = (source < self._host) & (further > 0)
        self._graph.add_arcs(nodes[dearer], source[dearer], further[dearer])


class _Graph:
    """A graph of capacities between a source, nodes and a sink."""

    def __init__(self, nodes: int) -> None:
        self._blocks = nodes
        self._nodes = nodes + 2
        self._tails: list[Array] = []
        self._heads: list[Array] = []
        self._capacities: list[Array] = []

    def add_nodes(self, count: int) -> Array:
        """Return new nodes."""
        self._nodes += count
        return np.arange(self._nodes - count, self._nodes)

    def add_arcs(self, tails: Array, heads: Array, capacities: Array | None = None) -> None:
        """Add arcs, of infinite capacity by default."""
        self._tails.append(tails)
        self._heads.append(heads)
        infinite = np.full(len(tails), np.inf)
        self._capacities.append(infinite if capacities is None else capacities)

    def add_source(self, heads: Array, capacities: Array | None = None) -> None:
        """Add arcs from the source."""
        self.add_arcs(np.full(len(heads), self._blocks), heads, capacities)

    def add_sink(self, tails: Array, capacities: Array | None = None) -> None:
        """Add arcs to the sink."""
        self.add_arcs(tails, np.full(len(tails), self._blocks + 1), capacities)

    def sink_side(self) -> Array:
        """Return the blocks that a minimum cut leaves on the sink's side, as a mask."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        tails, heads = np.concatenate(self._tails), np.concatenate(self._heads)
        capacities = self._scaled(np.concatenate(self._capacities))
        used = capacities > 0
        shape = (self._nodes, self._nodes)
        entries = (tails[used].astype(np.int32), heads[used].astype(np.int32))
        # Parallel arcs have the sum of their capacities.
        graph = csr_array((capacities[used], entries), shape=shape)
        graph.sum_duplicates()
        graph.data = np.minimum(graph.data, _INFINITE).astype(np.int32)
        flow = maximum_flow(graph, self._blocks, self._blocks + 1).flow
        remaining = (graph - flow).tocsr()
        remaining.data[remaining.data < 0] = 0
        remaining.eliminate_zeros()
        reached = breadth_first_order(remaining, self._blocks, return_predecessors=False)
        side = np.ones(self._nodes, dtype=bool)
        side[reached] = False
        return side[: self._blocks]

    def _scaled(self, capacities: Array) -> Array:
        """Return capacities as integers; those that are infinite exceed the sum of the others."""
        finite = np.isfinite(capacities)
        total = capacities[finite].sum()
        scale = (_CAPACITY - len(capacities)) / total if total > 0 else 1.0
        scaled = np.rint(np.where(finite, capacities, 0.0) * scale)
        return np.where(finite, scaled, _INFINITE).astype(np.int64)
