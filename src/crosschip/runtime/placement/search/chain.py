"""Exact dynamic programme for a chain: each block reads the block before it and the host only."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.costs import Costs
from crosschip.runtime.placement.search.problem import PlacementProblem

_MAXIMUM_LAYERS = 64
"""The maximum number of segments that the dynamic programme counts exactly."""


def is_chain(problem: PlacementProblem, costs: Costs) -> bool:
    """Return whether each block but the first reads the block before it, and no other block."""
    transfers = problem.transfers
    pairs = costs.tensors[transfers.tensor] & (transfers.reader < problem.blocks)
    sources, readers = transfers.source[pairs], transfers.reader[pairs]
    linked = np.zeros(problem.blocks, dtype=bool)
    linked[readers] = True
    return bool((readers == sources + 1).all() and linked[1:].all())


def place_chain(problem: PlacementProblem, costs: Costs) -> list[Array]:
    """Return the cheapest placement of a chain, none if the maximum of segments allows none.

    Memory limits do not count, except by penalties, and so does a maximum above 64 segments.
    """
    steps = _transitions(problem, costs)
    changed = _changes(problem)
    most = problem.max_segments or 0
    layers = most if 0 < most <= _MAXIMUM_LAYERS else 1
    if layers == 1 and most != 1:
        return _one_layer(costs.blocks, costs.launches, steps)
    return _layers(costs.blocks, costs.launches, steps, changed, layers)


def _changes(problem: PlacementProblem) -> Array:
    """Return whether a segment ends between each block and the next, by their devices."""
    devices = np.arange(len(problem.devices))
    labels = devices + np.zeros((problem.blocks, 1))
    if problem.dialects is not None:
        labels = labels + len(devices) * problem.dialects
    changes: Array = labels[:-1, :, None] != labels[1:, None, :]
    return changes


def _transitions(problem: PlacementProblem, costs: Costs) -> Array:
    """Return the cost of each pair of devices of neighbours, [blocks - 1, devices, devices]."""
    transfers, count = problem.transfers, len(problem.devices)
    steps = _changes(problem) * costs.launches
    pairs = costs.tensors[transfers.tensor] & (transfers.reader < problem.blocks)
    edges = transfers.costs[transfers.tensor[pairs], :count, :count]
    np.add.at(steps, transfers.source[pairs], edges)
    return steps


def _one_layer(blocks: Array, launches: Array, steps: Array) -> list[Array]:
    """Return the cheapest placement; a state is the device of the last block."""
    cost = blocks[0] + launches
    columns = np.arange(blocks.shape[1])
    previous: list[Array] = []
    for step, block in zip(steps, blocks[1:], strict=True):
        sums = cost[:, None] + step
        origin = sums.argmin(axis=0)
        previous.append(origin)
        cost = sums[origin, columns] + block
    return _trace(cost, previous)


def _layers(
    blocks: Array, launches: Array, steps: Array, changed: Array, layers: int
) -> list[Array]:
    """Return the cheapest placement; a state is the last device and the number of segments."""
    count = blocks.shape[1]
    cost = np.full((layers, count), np.inf)
    cost[0] = blocks[0] + launches
    previous: list[Array] = []
    for step, change, block in zip(steps, changed, blocks[1:], strict=True):
        sums = np.full((2, count, layers, count), np.inf)
        sums[0] = (cost[:, :, None] + np.where(change, np.inf, step)).transpose(1, 0, 2)
        sums[1, :, 1:] = (cost[:-1, :, None] + np.where(change, step, np.inf)).transpose(1, 0, 2)
        flat = sums.reshape(2 * count, layers * count)
        best = flat.argmin(axis=0)
        layer = np.arange(layers * count) // count - best // count
        previous.append(np.maximum(layer, 0) * count + best % count)
        cost = flat[best, np.arange(layers * count)].reshape(layers, count) + block
    return _trace(cost, previous)


def _trace(cost: Array, previous: list[Array]) -> list[Array]:
    """Return the devices that lead to the cheapest last state, none if it is infinite."""
    if np.isinf(cost).all():
        return []
    states = [int(cost.argmin())]
    for origin in reversed(previous):
        states.append(int(origin[states[-1]]))
    states.reverse()
    return [np.array(states, dtype=np.intp) % cost.shape[-1]]
