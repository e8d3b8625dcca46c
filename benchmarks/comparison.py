"""Ours against an engine called directly, with how sure the result is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crosschip.runtime.benchmark import Run, interleave

Open = Callable[[], Run]
"""Compiles a model and returns a run of it, with its inputs."""

_OURS, _DIRECT = "ours", "direct"


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
class Comparison:
    """The median milliseconds of one run in each block, of two competitors."""

    ours: tuple[float, ...]
    direct: tuple[float, ...]

    @property
    def ours_ms(self) -> float:
        """Ours, over all blocks."""
        return statistics.median(self.ours)

    @property
    def direct_ms(self) -> float:
        """The engine's, over all blocks."""
        return statistics.median(self.direct)

    @property
    def ratio(self) -> Estimate:
        """The engine's time over ours; above 1, we are faster."""
        return Estimate.of([d / o for o, d in zip(self.ours, self.direct, strict=True)])

    @property
    def added_us(self) -> Estimate:
        """What we add to the engine's time, in microseconds."""
        return Estimate.of([(o - d) * 1e3 for o, d in zip(self.ours, self.direct, strict=True)])


def compare(
    ours: Open, direct: Open, *, seconds: float, blocks: int, more_blocks: int, error: float
) -> Comparison:
    """Time two ways to run the same model.

    In each block both are compiled anew, for where the weights happen to lie in memory changes the
    speed of a compiled model by a per cent or two; who is compiled first changes from block to
    block. Within a block the two take turns (see `interleave`).

    Args:
        ours: compiles for one.
        direct: compiles for the other.
        seconds: how long the timed runs of a block take, roughly.
        blocks: how many there are at least.
        more_blocks: how many are added at most while the ratio is less sure than
        error: the standard error that is good enough.
    """
    competitors = {_OURS: ours, _DIRECT: direct}
    medians: dict[str, list[float]] = {_OURS: [], _DIRECT: []}
    result = Comparison((), ())
    while len(result.ours) < blocks or (
        len(result.ours) < blocks + more_blocks and result.ratio.error > error
    ):
        block = len(result.ours)
        order = sorted(competitors, reverse=block % 2 == 0)
        runs = {name: competitors[name]() for name in order}
        once = max(_seconds_of(run) for run in runs.values())
        count = max(10, int(seconds / 2 / once))
        burst = max(5, min(count // 4, int(0.05 / once)))
        for name, times in interleave(runs, count, seed=block, burst=burst).items():
            medians[name].append(statistics.median(times) * 1e3)
        result = Comparison(tuple(medians[_OURS]), tuple(medians[_DIRECT]))
    return result


def _seconds_of(run: Run) -> float:
    for _ in range(3):
        run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
