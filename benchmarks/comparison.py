"""Ours against an engine called directly, with how sure the result is."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crosschip.runtime.benchmark import Run, interleave

Open = Callable[[], Run]
"""Compiles a model and returns a run of it, with its inputs."""

_OURS, _DIRECT = "ours", "direct"
_LEAST_RUNS, _LEAST_BURST, _BURST_SECONDS = 10, 5, 0.05


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
    block. Within a block the two take turns (see `interleave`).

    Args:
        ours: compiles for one.
        direct: compiles for the other.
        seconds: how long the timed runs of a block take, roughly.
        blocks: how many there are at least.
        error: the standard error of the ratio that is good enough.
        patience: after how many seconds no further block makes it better.
    """
    medians: dict[str, list[float]] = {_OURS: [], _DIRECT: []}
    result = Comparison((), ())
    start = time.perf_counter()
    while len(result.ours) < blocks or (
        result.ratio.error > error and time.perf_counter() - start < patience
    ):
        block = len(result.ours)
        competitors = [(_OURS, ours), (_DIRECT, direct)][:: 1 if block % 2 else -1]
        runs = {name: compile() for name, compile in competitors}
        once = max(map(_seconds_of, runs.values()))
        count = max(_LEAST_RUNS, int(seconds / 2 / once))
        burst = max(_LEAST_BURST, min(count // 4, int(_BURST_SECONDS / once)))
        for name, times in interleave(runs, count, burst=burst, seed=block).items():
            medians[name].append(statistics.median(times) * 1e3)
        result = Comparison(tuple(medians[_OURS]), tuple(medians[_DIRECT]))
    return result


def _seconds_of(run: Run) -> float:
    for _ in range(3):
        run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
