"""Report of the graphs that `torch.compile` captured: which run on devices, and which do not."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from crosschip.ir.dataclass import dataclass

logger = logging.getLogger("crosschip")

_MOST = 1000


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """A graph that `torch.compile` captured.

    Attributes:
        number: counts from 1 in the process.
        operations: the number of operations by the device that runs them; empty if PyTorch does.
        reason: why PyTorch runs it; empty if it does not.
    """

    number: int
    operations: Mapping[str, int]
    reason: str

    def __str__(self) -> str:
        if self.reason:
            return f"torch.compile: graph {self.number} runs in PyTorch: {self.reason}"
        listed = ", ".join(f"{count} on {device}" for device, count in self.operations.items())
        return f"torch.compile: graph {self.number}: operations: {listed or 'none'}"


_graphs: deque[CapturedGraph] = deque(maxlen=_MOST)
_numbers = Counter[str]()


def captured_graphs() -> Sequence[CapturedGraph]:
    """Return the latest graphs that `torch.compile` captured in this process, at most 1000."""
    return tuple(_graphs)


def record(operations: Mapping[str, int], reason: str = "") -> None:
    """Record a graph and log it: as a warning if PyTorch runs it."""
    _numbers["graphs"] += 1
    graph = CapturedGraph(_numbers["graphs"], operations, reason)
    _graphs.append(graph)
    logger.log(logging.WARNING if reason else logging.INFO, str(graph))
