"""Latency and throughput of ten networks.

Against the engine behind the device, called directly on the same network with the same precision:
JAX's `jit`, PyTorch eager and compiled. Both begin and end with arrays on the host, and take turns.
Both have compiled once. The device compiles one graph where the engine does, and PyTorch's TF32 is
off in the whole process. First float32, then bfloat16: crosschip and JAX round the factors of
products, PyTorch's `autocast` chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Annotated

from benchmarks.comparison import Estimate, compare
from benchmarks.engines import difference
from benchmarks.subject import Column, Row
from gpu.engines import BFLOAT16, FLOAT32, Engine, engine_of, open_ours
from gpu.networks import Network, networks
from gpu.settings import Settings

import crosschip
from crosschip.bench.timing import Run

LIMIT = 0.97
REQUIREMENT = (
    f"the engine's median time is at least {LIMIT:g} of crosschip's (above 1: crosschip is faster)"
)
SHARE = 0.35
PER_DEVICE = True

_BATCH = 32
_TOLERANCES = {FLOAT32: 1e-3, BFLOAT16: 5e-2}


@dataclass(frozen=True)
class Speed(Row):
    """A network against one way to call the engine."""

    device: Annotated[str, Column("device")]
    network: Annotated[str, Column("network")]
    precision: Annotated[str, Column("precision")]
    batch: Annotated[int, Column("batch")]
    against: Annotated[str, Column("engine")]
    engine_ms: Annotated[float, Column("engine ms", ".3f")]
    ours_ms: Annotated[float, Column("crosschip ms", ".3f")]
    per_second: Annotated[float, Column("crosschip inputs/s", ".0f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    error: Annotated[float, Column("difference", ".1e")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.ratio.value >= LIMIT and self.error <= _TOLERANCES[self.precision]


def measure(device: str, settings: Settings) -> Iterator[Row | str]:
    """Yield the rows of each network: in float32 one by one, in batches, then narrower."""
    engine = engine_of(device)
    batches = [1, 2 if settings.quick else _BATCH]
    cases = list(product([FLOAT32, BFLOAT16], batches, networks(quick=settings.quick)))
    refused = set[str]()
    for index, (precision, batch, network) in enumerate(cases):
        if precision in refused:
            continue
        if not settings.remaining():
            left = (f"{n.name} ({p}, batch {b})" for p, b, n in cases[index:])
            yield f"{device}: no time was left for {', '.join(left)}"
            return
        try:
            yield from _compared(network, device, engine, precision, batch, settings)
        except crosschip.UnsupportedError as error:
            refused |= {precision} - {FLOAT32}
            reason = str(error).splitlines()[-1].strip()
            yield f"{device} refuses {network.name} in {precision}: {reason}"
        except Exception as error:  # the other networks are still worth measuring
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            yield f"{device}: {network.name}, batch {batch}, {precision}: {reason}"


def _compared(
    network: Network, device: str, engine: Engine, precision: str, batch: int, settings: Settings
) -> Iterator[Row]:
    x = network.input(batch)
    for way, properties in engine.ways.items():
        ours = open_ours(network, device, x, precision, properties)
        direct = engine.open(network, x, precision, way)
        error = difference([ours()], [direct()])  # type: ignore[list-item]  # runs of one array
        row = device, network.name, precision, batch, way
        yield _timed(row, ours, direct, error, quick=settings.quick)


def _timed(
    row: tuple[str, str, str, int, str], ours: Run, direct: Run, error: float, *, quick: bool
) -> Speed:
    result = compare(
        lambda: ours,
        lambda: direct,
        seconds=0.02 if quick else 0.6,
        blocks=1 if quick else 3,
        error=0.005,
        patience=0 if quick else 4,
    )
    per_second = row[3] / result.ours_ms * 1e3
    times = result.direct_ms, result.ours_ms, per_second
    return Speed(*row, *times, result.ratio, error, result.others)
