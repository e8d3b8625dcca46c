"""Costs with penalties in place of limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.placement.search.problem import PlacementProblem


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """What a search minimises: a problem's costs, with penalties for what is limited.

    Attributes:
        blocks: the duration of each block and of the transfers between it and the host, plus a
            penalty for each byte that it occupies, [blocks, devices].
        launches: the duration of the launch of a segment, plus a penalty, [devices].
        tensors: the tensors whose transfers `blocks` does not contain, as a mask.
    """

    blocks: Array
    launches: Array
    tensors: Array

    @classmethod
    def of(
        cls, problem: PlacementProblem, per_byte: Array | None = None, per_segment: float = 0.0
    ) -> Costs:
        """Return the costs of a problem.

        Args:
            problem: the problem.
            per_byte: a penalty in seconds for each byte on each device, [devices].
            per_segment: a penalty in seconds for each segment.
        """
        transfers, blocks = problem.transfers, problem.seconds.astype(np.float64)
        count, host = len(problem.devices), problem.blocks
        outputs = transfers.reader == host
        outputs &= transfers.source != host
        tensor, source = transfers.tensor[outputs], transfers.source[outputs]
        np.add.at(blocks, source, transfers.costs[tensor, :count, count])
        inner = transfers.reader != host
        readers = np.bincount(transfers.tensor[inner], minlength=len(transfers.sources))
        single = inner & (transfers.source == host) & (readers[transfers.tensor] == 1)
        tensor, reader = transfers.tensor[single], transfers.reader[single]
        np.add.at(blocks, reader, transfers.costs[tensor, count, :count])
        if per_byte is not None and problem.memory is not None:
            blocks = blocks + per_byte * problem.memory
        remaining = (readers > 0) & ~((transfers.sources == host) & (readers == 1))
        return cls(blocks, problem.launch_seconds + per_segment, remaining)


Deadline = Callable[[], bool]
"""Whether the time for a search is over."""
