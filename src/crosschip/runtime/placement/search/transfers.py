"""The tensors that pass between blocks, and what their transfers between devices cost."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass

HOST = -1
"""The index of the host among the blocks of a tensor."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value that passes between blocks.

    Attributes:
        source: the block that computes it; `HOST` for an input of the model.
        readers: the blocks that read it; `HOST` for an output of the model.
        bytes: its size.
    """

    source: int
    readers: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Transfers:
    """All pairs of a tensor and a reader, as arrays.

    The host is the block after the last one, on the device after the last one.

    Attributes:
        tensor: the tensor of each pair.
        source: the block that computes it.
        reader: the block that reads it.
        sources: the block that computes each tensor.
        costs: the duration of the transfer of each tensor from a device (row) to another (column),
            [tensors, devices + 1, devices + 1].
        readers: for each block, the blocks that read its tensors.
    """

    tensor: Array
    source: Array
    reader: Array
    sources: Array
    costs: Array
    readers: Sequence[Sequence[int]]

    @classmethod
    def of(
        cls, tensors: Sequence[Tensor], blocks: int, latency: Array, seconds_per_byte: Array
    ) -> Transfers:
        """Return the transfers of tensors between a number of blocks."""
        counts = np.array([len(tensor.readers) for tensor in tensors], dtype=np.intp)
        sources = np.array([tensor.source for tensor in tensors], dtype=np.intp)
        sizes = np.array([tensor.bytes for tensor in tensors], dtype=np.float64)
        all_readers = [reader for tensor in tensors for reader in tensor.readers]
        reader = np.array(all_readers, dtype=np.intp)
        if sources.size and (sources.min() < HOST or sources.max() >= blocks):
            raise ValueError("a tensor's source is no block")
        if reader.size and (reader.min() < HOST or reader.max() >= blocks):
            raise ValueError("a tensor's reader is no block")
        sources[sources == HOST] = blocks
        reader[reader == HOST] = blocks
        pairs = np.unique(np.repeat(np.arange(len(tensors)), counts) * (blocks + 1) + reader)
        tensor, reader = np.divmod(pairs, blocks + 1)
        source = sources[tensor]
        backward = (source < blocks) & (reader <= source)
        if backward.any():
            first = int(np.flatnonzero(backward)[0])
            raise ValueError(f"block {reader[first]} reads a tensor of block {source[first]}")
        costs = latency + sizes[:, None, None] * seconds_per_byte
        return cls(tensor, source, reader, sources, costs, _readers(source, reader, blocks))

    def seconds(self, devices: Array) -> float:
        """Return the duration of all transfers, with each block on a device."""
        tensor, destination, origin = self.between(devices)
        return float(self.costs[tensor, origin, destination].sum())

    def count(self, devices: Array) -> int:
        """Return the number of transfers between different devices or a device and the host."""
        return len(self.between(devices)[0])

    def between(self, devices: Array) -> tuple[Array, Array, Array]:
        """Return the tensor, the destination and the origin of each transfer, by device."""
        count = self.costs.shape[1] - 1
        locations = np.append(devices, count)
        destination, origin = locations[self.reader], locations[self.source]
        moved = destination != origin
        pairs = np.unique(self.tensor[moved] * (count + 1) + destination[moved])
        tensor, destination = np.divmod(pairs, count + 1)
        return tensor, destination, locations[self.sources[tensor]]


def _readers(source: Array, reader: Array, blocks: int) -> Sequence[Sequence[int]]:
    """Return, for each block, the blocks that read its tensors, in ascending order."""
    inner = (source < blocks) & (reader < blocks)
    sources, readers = np.divmod(np.unique(source[inner] * blocks + reader[inner]), max(blocks, 1))
    bounds = np.searchsorted(sources, np.arange(blocks + 1)).tolist()
    flat = readers.tolist()
    return [flat[first:last] for first, last in pairwise(bounds)]
