"""Random placement problems, and references for the quality of their solutions."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.placement.search.problem import Assignment, PlacementProblem
from crosschip.runtime.placement.search.transfers import HOST, Tensor

_CHUNK = 50_000
"""The number of partial placements that are extended together."""


def random_problem(
    seed: int,
    blocks: int,
    devices: int = 5,
    *,
    chain: bool = False,
    launch: float | None = None,
    transfer: float | None = None,
    constraints: bool = False,
) -> PlacementProblem:
    """Return a problem of blocks on devices with asymmetric transfers.

    Blocks take about a millisecond on the average device. Each reads one to three of the blocks
    shortly before it. A few blocks are refused by some devices.

    Args:
        seed: the seed of the random numbers.
        blocks: the number of blocks.
        devices: the number of devices.
        chain: whether each block reads the one before only.
        launch: the scale of launches; random by default.
        transfer: the scale of transfers; random by default.
        constraints: whether there are pins, memory limits, dialects and a maximum of segments.
    """
    random = np.random.default_rng((seed, blocks, devices))
    speeds = np.exp(random.normal(0, 0.7, (blocks, devices)) + random.normal(0, 0.3, devices))
    seconds = 1e-3 * random.exponential(1, (blocks, 1)) * speeds
    refused = random.random((blocks, devices)) < random.choice([0.05, 0.3])
    refused[np.arange(blocks), random.integers(0, devices, blocks)] = False
    seconds[refused] = np.inf
    launch = random.choice([0.1, 1, 3]) if launch is None else launch
    transfer = random.choice([0.1, 1, 3]) if transfer is None else transfer
    off_diagonal = 1 - np.eye(devices + 1)
    shape = off_diagonal.shape
    problem = PlacementProblem(
        devices=tuple(f"chip{number}" for number in range(devices)),
        seconds=seconds,
        tensors=_tensors(random, blocks, chain),
        latency=random.uniform(2e-5, 3e-4, shape) * off_diagonal * transfer,
        seconds_per_byte=random.uniform(1e-10, 2e-9, shape) * off_diagonal * transfer,
        launch_seconds=random.uniform(2e-5, 3e-4, devices) * launch,
    )
    return _constrained(random, problem) if constraints else problem


def _tensors(random: np.random.Generator, blocks: int, chain: bool) -> tuple[Tensor, ...]:
    """Return the tensors between random blocks; the last blocks' are the model's outputs."""
    readers: list[list[int]] = [[] for _ in range(blocks)]
    for block in range(1, blocks):
        count = random.choice([1, 2, 3], p=[0.55, 0.35, 0.1])
        earliest = max(0, block - 6)
        sources = {block - 1} if chain else set(random.integers(earliest, block, count).tolist())
        for source in sources:
            readers[source].append(block)
    sizes = random.exponential(4e5, blocks + 1).astype(int).tolist()
    first = (0,) if chain or blocks < 2 else (0, int(random.integers(1, blocks)))
    between = [
        Tensor(block, tuple(reading) or (HOST,), size)
        for block, (reading, size) in enumerate(zip(readers, sizes[1:], strict=True))
    ]
    return (Tensor(HOST, first, sizes[0]), *between) if blocks else ()


def _constrained(random: np.random.Generator, problem: PlacementProblem) -> PlacementProblem:
    """Return the problem with random constraints, which no placement may meet."""
    seconds = problem.seconds.copy()
    blocks, devices = seconds.shape
    for block in np.flatnonzero(random.random(blocks) < 0.1).tolist():
        device = random.choice(np.flatnonzero(np.isfinite(seconds[block])))
        seconds[block, np.arange(devices) != device] = np.inf
    memory = random.integers(0, 1_000_000, (blocks, 1)) + random.integers(0, 100_000, seconds.shape)
    share = memory.sum() / devices * random.uniform(0.2, 1.5, devices)
    limited = random.random(devices) < random.choice([0, 0.5, 1])
    names = zip(problem.devices, limited.tolist(), share.tolist(), strict=True)
    return PlacementProblem(
        devices=problem.devices,
        seconds=seconds,
        tensors=problem.tensors,
        latency=problem.latency,
        seconds_per_byte=problem.seconds_per_byte,
        launch_seconds=problem.launch_seconds,
        dialects=random.integers(0, 2, seconds.shape) if random.random() < 0.2 else None,
        memory=memory,
        memory_limits={name: int(bytes) for name, has, bytes in names if has},
        max_segments=int(random.integers(1, 8)) if random.random() < 0.5 else None,
    )


def optimal_seconds(problem: PlacementProblem, upper: float) -> float:
    """Return the least predicted duration of a problem without limits, or `upper` if it is less.

    All placements are enumerated, but for those whose beginning costs too much for any end: its
    blocks and transfers, the launches on any path and of each device, and the least that the blocks
    to come cost when each reads its tensors from the devices that suit it.
    """
    return _Enumeration(problem, upper).least(
        np.zeros((1, 0), dtype=np.intp), np.zeros(1), np.zeros((1, 0))
    )


class _Enumeration:
    """All placements, block after block."""

    def __init__(self, problem: PlacementProblem, upper: float) -> None:
        self._problem = problem
        self._upper = upper
        count, host = len(problem.devices), HOST
        latency, per_byte = problem.latency, problem.seconds_per_byte
        self._inputs: list[list[tuple[Tensor, Array]]] = [[] for _ in range(problem.blocks)]
        self._blocks = problem.seconds.copy()
        for tensor in problem.tensors:
            costs = latency + tensor.bytes * per_byte
            for reader in set(tensor.readers):
                if reader != host:
                    self._inputs[reader].append((tensor, costs))
                elif tensor.source != host:
                    self._blocks[tensor.source] += costs[:count, count]
        self._ahead: list[list[tuple[Tensor, int, Array]]] = [[] for _ in range(problem.blocks)]
        self._bound_ahead(count)

    def _bound_ahead(self, count: int) -> None:
        """Bound the costs that follow from the device of a tensor's source, for each reader."""
        following = self._blocks.copy()
        for block in reversed(range(self._problem.blocks)):
            for tensor, costs in self._inputs[block]:
                alone = len(set(tensor.readers)) == 1
                shares = following[block] / len(self._inputs[block])
                sums = (costs[:, :count] if alone else 0 * costs[:, :count]) + shares
                bound = sums.min(axis=1)
                self._ahead[block].append((tensor, block, bound))
                if tensor.source != HOST:
                    following[tensor.source] = following[tensor.source] + bound[:count]
        # A block that reads nothing costs at least its minimum.
        self._alone = [
            0.0 if self._inputs[block] else float(following[block].min())
            for block in range(self._problem.blocks)
        ]

    def least(self, placed: Array, seconds: Array, launches: Array) -> float:
        """Return the least duration of placements that begin as given, or the upper bound.

        Args:
            placed: the devices of the first blocks of each placement.
            seconds: the duration of these blocks and their transfers.
            launches: the least duration of the launches on a path to each of these blocks.
        """
        block = placed.shape[1]
        if block == self._problem.blocks:
            return self._least_complete(placed, seconds + launches.max(axis=1))
        for first in range(0, len(placed), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            extended = self._extend(placed[chunk], seconds[chunk], launches[chunk])
            if len(extended[0]):
                self._upper = min(self._upper, self.least(*extended))
        return self._upper

    def _least_complete(self, placed: Array, bounds: Array) -> float:
        for row in np.argsort(bounds).tolist():
            if bounds[row] >= self._upper:
                break
            self._upper = min(self._upper, self._problem.predicted_seconds(placed[row]))
        return self._upper

    def _extend(self, placed: Array, seconds: Array, launches: Array) -> tuple[Array, Array, Array]:
        """Place the next block on each device, and drop what cannot be less than the bound."""
        problem, block, count = self._problem, placed.shape[1], len(self._problem.devices)
        device = np.tile(np.arange(count), len(placed))
        placed = np.repeat(placed, count, axis=0)
        seconds = np.repeat(seconds, count) + self._blocks[block, device]
        launches = np.repeat(launches, count, axis=0)
        path = problem.launch_seconds[device]
        for tensor, costs in self._inputs[block]:
            others = [r for r in set(tensor.readers) if HOST != r < block]
            delivered = (placed[:, others] == device[:, None]).any(axis=1)
            origin = count if tensor.source == HOST else placed[:, tensor.source]
            seconds += np.where(delivered, 0.0, costs[origin, device])
            if tensor.source != HOST:
                start = problem.launch_seconds[device] * (origin != device)
                path = np.maximum(path, launches[:, tensor.source] + start)
        placed = np.append(placed, device[:, None], axis=1)
        launches = np.append(launches, path[:, None], axis=1)
        used = (placed[:, :, None] == np.arange(count)).any(axis=1) @ problem.launch_seconds
        bound = seconds + np.maximum(launches.max(axis=1), used)
        bound += sum(self._alone[block + 1 :])
        for later in range(block + 1, problem.blocks):
            for tensor, _, ahead in self._ahead[later]:
                if tensor.source <= block:
                    origin = count if tensor.source == HOST else placed[:, tensor.source]
                    bound += ahead[origin]
        # Placements that could be better by less than a rounding error are dropped as well.
        alive = bound < self._upper * (1 - 1e-9)
        return placed[alive], seconds[alive], launches[alive]


def violations(problem: PlacementProblem, devices: Assignment) -> list[str]:
    """Return the constraints that a placement violates, computed in plain Python."""
    result = []
    occupied = dict.fromkeys(problem.devices, 0)
    for block, device in enumerate(devices):
        if np.isinf(problem.seconds[block, device]):
            result.append(f"block {block} on {problem.devices[device]}")
        if problem.memory is not None:
            occupied[problem.devices[device]] += int(problem.memory[block, device])
    result += [
        f"{occupied[name]} bytes on {name}"
        for name, limit in problem.memory_limits.items()
        if occupied[name] > limit
    ]
    if problem.max_segments is not None:
        count = len(problem.segments(devices))
        if count > problem.max_segments:
            result.append(f"{count} segments")
    return result
