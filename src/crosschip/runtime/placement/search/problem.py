"""The problem of placing blocks of operations on devices, and its exact objective."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

import numpy as np

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass
from crosschip.ir.errors import Error
from crosschip.runtime.placement.runs import SEARCH_BUDGET, fewest_runs
from crosschip.runtime.placement.search.transfers import HOST, Tensor, Transfers

Assignment = Sequence[int] | Array
"""The device of each block, by index."""


class InfeasibleError(Error):
    """No placement meets the constraints; the message names the constraint and what is missing."""


@dataclass(frozen=True, slots=True, eq=False)
class PlacementProblem:
    """Blocks, devices, and what each combination of them costs.

    A block is a set of operations that one device runs. Blocks are numbered in an executable
    order: a block reads tensors of blocks before it.

    Attributes:
        devices: the names of the devices.
        seconds: the duration of each block on each device, [blocks, devices]; infinite if the
            device cannot or may not run the block.
        tensors: the values that pass from one block to another, from the host, or to the host.
        latency: the duration of a transfer of zero bytes from a device (row) to another (column),
            [devices + 1, devices + 1]; the last index is the host; the diagonal is zero.
        seconds_per_byte: what each byte adds to it, of the same shape.
        launch_seconds: the duration of starting a segment on each device, [devices].
        dialects: a number for each block and device, [blocks, devices]; blocks with different
            numbers are in different segments. `None` if all are equal.
        memory: the bytes that each block occupies on each device, [blocks, devices]; `None` if
            nothing is limited.
        memory_limits: the bytes that the blocks on a device may occupy, by the device's name.
        max_segments: the maximum number of segments; `None` for any number.
    """

    devices: tuple[str, ...]
    seconds: Array
    tensors: tuple[Tensor, ...]
    latency: Array
    seconds_per_byte: Array
    launch_seconds: Array
    dialects: Array | None = None
    memory: Array | None = None
    memory_limits: Mapping[str, int] = field(default_factory=dict)
    max_segments: int | None = None
    transfers: Transfers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the shapes, and derive the transfers.

        Raises:
            ValueError: an array has another shape than its description, or a block reads a tensor
                of a block that is not before it.
        """
        count = len(self.devices)
        shapes = {
            "seconds": (self.blocks, count),
            "latency": (count + 1, count + 1),
            "seconds_per_byte": (count + 1, count + 1),
            "launch_seconds": (count,),
            "dialects": (self.blocks, count),
            "memory": (self.blocks, count),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} has shape {array.shape}, not {shape}")
        if self.memory is None and self.memory_limits:
            raise ValueError("memory_limits without memory")
        transfers = Transfers.of(
            self.tensors, self.blocks, np.asarray(self.latency), np.asarray(self.seconds_per_byte)
        )
        object.__setattr__(self, "transfers", transfers)

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self.seconds)

    @property
    def limits(self) -> Array:
        """The memory limit of each device in bytes, infinite without one, [devices]."""
        return np.array([self.memory_limits.get(name, np.inf) for name in self.devices])

    def predicted_seconds(self, devices: Assignment) -> float:
        """Return the duration of one run with each block on a device, by index.

        It is the sum of the blocks, the transfers (a tensor goes once to each other device that
        reads it) and the launches of the segments. It is infinite if a device may not run a block.
        """
        return self.seconds_without_launches(devices) + self.seconds_of_launches(
            devices, self.segments(devices)
        )

    def seconds_without_launches(self, devices: Assignment) -> float:
        """Return the duration of the blocks and the transfers."""
        assigned = np.asarray(devices, dtype=np.intp)
        blocks = float(self.seconds[np.arange(self.blocks), assigned].sum())
        return blocks + self.transfers.seconds(assigned)

    def seconds_of_launches(self, devices: Assignment, segments: Sequence[Sequence[int]]) -> float:
        """Return the duration of the launches of segments."""
        return float(sum(self.launch_seconds[devices[segment[0]]] for segment in segments))

    def segments(self, devices: Assignment, budget: int = SEARCH_BUDGET) -> Sequence[Sequence[int]]:
        """Return the segments of a placement, as compilation cuts them, by indices of blocks.

        With a smaller budget, it is faster, and there may be more segments.
        """
        labels = self.labels(np.asarray(devices, dtype=np.intp))
        if not labels or labels.count(labels[0]) == len(labels):
            return [range(len(labels))] if labels else []
        return fewest_runs(labels, self.transfers.readers, budget)

    def labels(self, devices: Array) -> list[str]:
        """Return the device and the dialect of each block; they are equal within a segment."""
        names = [self.devices[device] for device in devices.tolist()]
        if self.dialects is None or not self.dialects.any():
            return names
        dialects = self.dialects[np.arange(self.blocks), devices].tolist()
        return [f"{name} {dialect}" for name, dialect in zip(names, dialects, strict=True)]

    def occupied(self, devices: Assignment) -> Array:
        """Return the bytes that the blocks occupy on each device, [devices]."""
        assigned = np.asarray(devices, dtype=np.intp)
        if self.memory is None:
            return np.zeros(len(self.devices))
        occupied = self.memory[np.arange(self.blocks), assigned]
        return np.bincount(assigned, occupied, minlength=len(self.devices))


@dataclass(frozen=True, slots=True)
class Solution:
    """A placement that meets the constraints.

    Attributes:
        devices: the device of each block, by index.
        seconds: the predicted duration of one run.
        segments: the number of segments.
    """

    devices: tuple[int, ...]
    seconds: float
    segments: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """What changes if one block runs on another device.

    Attributes:
        device: the other device, by index.
        seconds: the difference of the predicted duration of the whole; infinite if the device
            cannot run the block.
        transfers: the difference of the number of transfers.
    """

    device: int
    seconds: float
    transfers: int


__all__ = [
    "HOST",
    "Alternative",
    "Assignment",
    "InfeasibleError",
    "PlacementProblem",
    "Solution",
    "Tensor",
]
