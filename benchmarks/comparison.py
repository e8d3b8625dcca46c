"""Ours against an engine called directly, with how sure the result is."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.neighbours import Watch
from crosschip.bench.timing import Run, interleave

Open = Callable[[], Run]
"""Compiles a model and returns a run of it, with its inputs."""

_OURS, _DIRECT = "ours", "direct"
_LEAST_RUNS, _LEAST_BURST, _BURST_SECONDS = 10, 5, 0.05
CALM = 0.05
"""The part of the machine that others may use while figures are taken."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median over blocks of runs.

    Attributes:
        value: the median.
        error: its standard error, from the median absolute deviation of the blocks.
    """

    value: float
    error: float

    @classmethod
    def of(cls, blocks: Sequence[float]) -> Estimate:
        """The median of one figure a block and how sure it is, if the blocks scatter normally."""
        median = statistics.median(blocks)
        deviation = statistics.median(abs(block - median) for block in blocks)
        return cls(median, 1.253 * 1.483 * deviation / len(blocks) ** 0.5)

    def __format__(self, format: str) -> str:
        return f"{self.value:{format}} ± {self.error:{format}}"


@dataclass(frozen=True, slots=True)
class Block:
    """Some runs of two competitors.

    Attributes:
        ours_ms: the median of our runs.
        direct_ms: the median of the engine's.
        others: the part of the machine that other processes used meanwhile.
    """

    ours_ms: float
    direct_ms: float
    others: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The blocks that count."""

    blocks: tuple[Block, ...]

    @property
    def ours_ms(self) -> float:
        """Our time."""
        return statistics.median(block.ours_ms for block in self.blocks)

    @property
    def direct_ms(self) -> float:
        """The engine's time."""
        return statistics.median(block.direct_ms for block in self.blocks)

    @property
    def ratio(self) -> Estimate:
        """The engine's time over ours; above 1, we are faster."""
        return Estimate.of([block.direct_ms / block.ours_ms for block in self.blocks])

    @property
    def added_us(self) -> Estimate:
        """The time that we add to the engine's, in microseconds."""
        return Estimate.of([(block.ours_ms - block.direct_ms) * 1e3 for block in self.blocks])

    @property
    def others(self) -> float:
        """The part of the machine that other processes used in the most disturbed block."""
        return max(block.others for block in self.blocks)


def compare(
    ours: Open,
    direct: Open,
    *,
    seconds: float,
    blocks: int,
    error: float = math.inf,
    patience: float = 0.0,
) -> Comparison:
    """Time two ways to run the same model.

    In each block both are compiled anew, for where the weights happen to lie in memory changes the
    speed of a compiled model by a per cent or two; who is compiled first changes from block to
    block. Within a block the two take turns (see `interleave`). A block during which other
    processes used a twentieth of the machine or more only counts if patience ends before there are
    enough others.

    Args:
        ours: compiles for one.
        direct: compiles for the other.
        seconds: how long the timed runs of a block take, roughly.
        blocks: how many count at least.
        error: the standard error of the ratio that is good enough.
        patience: after how many seconds no further block makes it better.
    """
    measured: list[Block] = []
    end = time.perf_counter() + patience
    while True:
        measured.append(_block(ours, direct, seconds, len(measured)))
        calm = [block for block in measured if block.others < CALM]
        enough = len(calm) >= blocks and Comparison(tuple(calm)).ratio.error <= error
        if enough or (time.perf_counter() > end and len(measured) >= blocks):
            break
    calmest = sorted(measured, key=lambda block: block.others)[: max(blocks, len(calm))]
    return Comparison(tuple(calmest))


def _block(ours: Open, direct: Open, seconds: float, number: int) -> Block:
    competitors = [(_OURS, ours), (_DIRECT, direct)][:: 1 if number % 2 else -1]
    runs = {name: compile() for name, compile in competitors}
    once = max(map(_seconds_of, runs.values()))
    count = max(_LEAST_RUNS, int(seconds / 2 / once))
    burst = max(_LEAST_BURST, min(count // 4, int(_BURST_SECONDS / once)))
    watch = Watch()
    times = interleave(runs, count, burst=burst, seed=number)
    ours_ms, direct_ms = (statistics.median(times[name]) * 1e3 for name in (_OURS, _DIRECT))
    return Block(ours_ms, direct_ms, watch.share())


def _seconds_of(run: Run) -> float:
    for _ in range(3):
        run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
