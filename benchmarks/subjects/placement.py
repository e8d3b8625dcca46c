"""The time that placing a large model on four devices takes.

A chain of operations and a graph in which half of them read the input and the others add the
results up, imported from `.onnx` and simplified. Each of three devices takes one or two sorts of
operators, the fourth takes all; so the device changes at almost every operation of the chain. With
a partition file, every second operator is kept off the first device by a line with all its names;
reading and matching the file is counted. The fastest of several runs counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import crosschip
from benchmarks.subject import Column, Row
from benchmarks.synthetic import GRAPHS, write_onnx
from crosschip.bench.timing import Timing, interleave
from crosschip.hal import YES, Kind, Offer, Support
from crosschip.ir import Model
from crosschip.lowering.decomposition import Ask
from crosschip.passes import simplify
from crosschip.runtime.placement.options import PlacementOptions
from crosschip.runtime.placement.placement import Placement, place
from crosschip.runtime.placement.sources import sources_of

LIMITS = {10_000: 2.0, 100_000: 30.0}
REQUIREMENT = ", ".join(
    f"{size:,} operations take less than {limit:g} s" for size, limit in LIMITS.items()
)

_TAKES = (("RELU", "TANH"), ("ADD",), ("SIGMOID",), ())


@dataclass(frozen=True)
class Placing(Row):
    """One graph of one size."""

    graph: Annotated[str, Column("graph")]
    operations: Annotated[int, Column("operations", ",")]
    lines: Annotated[int, Column("lines of the partition file", ",")]
    segments: Annotated[int, Column("segments", ",")]
    seconds: Annotated[float, Column("s", ".2f")]

    @property
    def met(self) -> bool:
        return self.seconds < LIMITS[self.operations]


def measure(*, quick: bool) -> Iterator[Placing]:
    """Each graph, without a partition file and with one; `quick` leaves the large ones out."""
    for kind, make in GRAPHS.items():
        for size in list(LIMITS)[: 1 if quick else None]:
            with TemporaryDirectory() as folder:
                path = Path(folder, "synthetic.onnx")
                write_onnx(make(size), path)
                given = crosschip.load(path)
                model = simplify(given)
                lines = [source.line for source in sources_of(model)[::2]]
                partition = Path(folder, "partition")
                partition.write_text("\n".join(lines), encoding="utf-8")
                for file, count in ((None, 0), (partition, len(lines))):
                    run = _placing(model, given, PlacementOptions(partition=file))
                    seconds = interleave({"": run}, 3, burst=1, warm_up=0)[""]
                    best = Timing.of(seconds).best_ms / 1e3
                    yield Placing(kind, size, count, len(run().segments), best)


def _placing(model: Model, given: Model, options: PlacementOptions) -> Callable[[], Placement]:
    devices = {name: _takes(*types) for name, types in zip("abcd", _TAKES, strict=True)}
    kinds = dict.fromkeys(devices, Kind.CPU)
    return lambda: place(model, devices, constraints=options.constraints(model, given, kinds))


def _takes(*types: str) -> Ask:
    """A device that takes operators of some types, or all."""
    return lambda model: Offer(
        [
            YES if not types or operation.type in types else Support.no(operation, "", "refused")
            for operation in model.operations
        ]
    )
