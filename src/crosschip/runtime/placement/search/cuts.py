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
        moved = _expand(problem, costs.blocks, costs.tensors, transfers, devices, expansion % count)
        unchanged = 0 if moved.any() else unchanged + 1
        devices = np.where(moved, expansion % count, devices)
        if unchanged == count or deadline():
            break
    return devices


def _expand(
    problem: PlacementProblem,
    blocks: Array,
    tensors: Array,
    costs: Array,
    devices: Array,
    device: int,
) -> Array:
    """Return the blocks that should move to a device, as a mask.

    The nodes are the blocks, then an auxiliary node for each tensor and device that reads it. A
    block moves if its node is on the sink's side of the cut.
    """
    count, host = len(problem.devices), problem.blocks
    transfers = problem.transfers
    index = np.arange(host)
    here, there = blocks[index, devices], blocks[:, device]
    fixed = (devices == device) | ~np.isfinite(there)
    graph = _Graph(host)
    change = np.where(fixed, 0.0, there - here)
    graph.add_source(index, np.where(change > 0, change, 0.0))
    graph.add_sink(index, np.where(change < 0, -change, 0.0))
    graph.add_source(index[fixed & (devices != device)])
    graph.add_sink(index[devices == device])
    kept = tensors[transfers.tensor] & (transfers.reader != host)
    tensor, source, reader = transfers.tensor[kept], transfers.source[kept], transfers.reader[kept]
    locations = np.append(devices, count)
    origin = locations[source]
    # Whether a reader is on the device while the tensor's source keeps its own.
    _, first, group = np.unique(tensor, return_index=True, return_inverse=True)
    nodes = graph.add_nodes(len(first))
    cost = costs[tensor[first], origin[first], device]
    inner = source[first] < host
    graph.add_arcs(source[first][inner], nodes[inner], cost[inner])
    graph.add_source(nodes[~inner], cost[~inner])
    graph.add_arcs(nodes[group], reader)
    # Whether a reader stays on another device: what that costs as the source is, and if it moves.
    staying = devices[reader] != device
    tensor, source, reader = tensor[staying], source[staying], reader[staying]
    pairs = tensor * (count + 1) + devices[reader]
    _, first, group = np.unique(pairs, return_index=True, return_inverse=True)
    nodes = graph.add_nodes(len(first))
    graph.add_arcs(reader, nodes[group])
    tensor, source, destination = tensor[first], source[first], devices[reader[first]]
    now = costs[tensor, locations[source], destination]
    inner = source < host
    further = costs[tensor, device, destination] - now
    graph.add_sink(nodes, now)
    inner &= further > 0
    graph.add_arcs(nodes[inner], source[inner], further[inner])
    moved: Array = graph.sink_side() & (devices != device)
    return moved


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
