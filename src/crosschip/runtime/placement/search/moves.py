"""The differences that moves of blocks to other devices make."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.problem import PlacementProblem


def move_seconds(problem: PlacementProblem, devices: Array) -> Array:
    """Return what each move of one block to a device adds to the duration, [blocks, devices].

    Blocks and transfers count exactly, launches do not. The difference is infinite where the device
    may not run the block, and zero on its own device.
    """
    return _differences(problem, devices, problem.seconds, problem.transfers.costs)


def move_transfers(problem: PlacementProblem, devices: Array) -> Array:
    """Return what each move of one block to a device adds to the number of transfers."""
    count = len(problem.devices)
    each = np.broadcast_to(1.0 - np.eye(count + 1), problem.transfers.costs.shape)
    return _differences(problem, devices, np.zeros((problem.blocks, count)), each)


def _differences(problem: PlacementProblem, devices: Array, blocks: Array, costs: Array) -> Array:
    """Return what moves of single blocks add to the sum of costs of blocks and transfers."""
    transfers, count, host = problem.transfers, len(problem.devices), problem.blocks
    now = np.take_along_axis(blocks, devices[:, None], axis=1)
    if np.isinf(now).any():
        now = np.where(np.isinf(now), 0.0, now)
    result: Array = np.append(blocks - now, np.zeros((1, count)), axis=0)
    locations = np.append(devices, count)
    tensor, reader = transfers.tensor, transfers.reader
    destination = locations[reader]
    pairs = tensor * (count + 1) + destination
    tensors = len(transfers.sources)
    readers = np.bincount(pairs, minlength=tensors * (count + 1)).reshape(tensors, count + 1)
    # A reader that moves needs the tensor there, and may be the last that needed it here.
    origins = locations[transfers.sources]
    arrival = np.where(readers > 0, 0.0, costs[np.arange(tensors), origins])
    gain = np.where(
        readers[tensor, destination] == 1, costs[tensor, origins[tensor], destination], 0.0
    )
    moved = arrival[tensor, :count] - gain[:, None]
    moved[np.arange(count) == destination[:, None]] = 0.0
    _add_rows(result, reader, moved)
    # A source that moves sends its tensors from there.
    inner = np.flatnonzero(transfers.sources < host)
    sent = np.einsum("td,tsd->ts", (readers[inner] > 0).astype(float), costs[inner])[:, :count]
    sent -= sent[np.arange(len(inner)), origins[inner]][:, None]
    _add_rows(result, transfers.sources[inner], sent)
    moves: Array = result[:host]
    return moves


def _add_rows(result: Array, index: Array, rows: Array) -> None:
    """Add rows to those with an index; the same index may occur several times."""
    for column in range(result.shape[1]):
        result[:, column] += np.bincount(index, rows[:, column], minlength=len(result))
