"""The growth of the time per operation with the model.

The models are a chain of operations, and a graph in which half of the operations read the input and
the others add the results, of 1,000, 10,000 and 100,000 operations; some of them compute constants
that passes fold. Import reads a file in each format; passes are those of `compile`; placement
includes cutting into segments, once with a device that supports all operations, once with a device
that declines each fifth operation, `TANH`, and a second one for these (on the chain, the device
changes twice every five operations). Sizes are measured in turn; the fastest of several runs
counts, because the garbage of one run slows down the next. Times are per operation of the original
model. They are comparable on one machine only: to compare two versions, run this benchmark with
`PYTHONPATH` at the source of each, in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import crosschip
from benchmarks.subject import Column, Row
from benchmarks.synthetic import GRAPHS, WRITERS, Graph
from crosschip.bench.timing import Run, Timing, interleave
from crosschip.hal import YES, Offer, Support
from crosschip.ir import Operation
from crosschip.lowering.decomposition import Ask
from crosschip.passes import simplify
from crosschip.runtime.placement.placement import place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMIT = 2.0
REQUIREMENT = f"the time per operation differs by at most a factor of {LIMIT:g} between sizes"

SIZES = (1_000, 10_000, 100_000)

_PASSES = "passes"
_TWO_DEVICES = "placement on two devices"
_WHOLE_ROAD = "the road from .onnx"
_ROAD = ("import .onnx", _PASSES, _TWO_DEVICES)


@dataclass(frozen=True)
class Scaling(Row):
    """One step of the road on graphs of one kind."""

    graph: Annotated[str, Column("graph")]
    step: Annotated[str, Column("step")]
    microseconds: Annotated[Mapping[int, float], Column("µs per operation of {:,}", ".1f")]
    factor: Annotated[float, Column("largest / smallest", ".2f")]

    @property
    def met(self) -> bool:
        return self.factor <= LIMIT


def measure(*, quick: bool) -> Iterator[Scaling]:
    """Each step on each kind of graph, and the road: import from .onnx, passes, two devices."""
    sizes = SIZES[:2] if quick else SIZES
    for kind, make in GRAPHS.items():
        with TemporaryDirectory() as folder:
            steps = {size: dict(_steps(make(size), Path(folder, str(size)))) for size in sizes}
            road = dict.fromkeys(sizes, 0.0)
            for step in steps[sizes[0]]:
                each = _time({size: steps[size][step] for size in sizes})
                yield _row(kind, step, each)
                if step in _ROAD:
                    road = {size: road[size] + each[size] for size in sizes}
            yield _row(kind, _WHOLE_ROAD, road)


def _steps(graph: Graph, folder: Path) -> Iterator[tuple[str, Run]]:
    """The steps that a graph goes through, each ready to run."""
    folder.mkdir()
    for format, write in WRITERS.items():
        path = folder / f"synthetic{format}"
        write(graph, path)
        yield f"import {format}", partial(crosschip.load, path)
    model = crosschip.load(path)
    yield _PASSES, partial(simplify, model)
    simple = simplify(model)
    yield "placement on one device", partial(place, simple, {"first": _asks(_takes_all)})
    both = {"first": _asks(_takes_most), "second": _asks(_takes_all)}
    yield _TWO_DEVICES, partial(place, simple, both)


def _time(runs: Mapping[int, Run]) -> dict[int, float]:
    """The microseconds per operation, by size."""
    seconds = interleave({str(size): run for size, run in runs.items()}, 3, burst=1, warm_up=0)
    return {size: Timing.of(seconds[str(size)]).best_ms * 1e3 / size for size in runs}


def _row(kind: str, step: str, each: Mapping[int, float]) -> Scaling:
    factor = max(each.values()) / min(each.values())
    return Scaling(kind, step, each, factor)


def _asks(supports: Callable[[Operation], Support]) -> Ask:
    return lambda model: Offer([supports(operation) for operation in model.operations])


def _takes_all(operation: Operation) -> Support:
    return YES


def _takes_most(operation: Operation) -> Support:
    return Support.no(operation, "", "refused") if operation.type == "TANH" else YES


def draw(rows: Sequence[Scaling]) -> Figure:
    """Each step's time per operation over the size of the graph, for each kind of graph."""
    from benchmarks import plot  # here, for nothing else needs matplotlib

    graphs = list(dict.fromkeys(row.graph for row in rows))
    figure, systems = plot.beside([f"Time per operation: {graph}" for graph in graphs], 3.8)
    for axes, graph in zip(systems, graphs, strict=True):
        _steps_over_size(axes, [row for row in rows if row.graph == graph])
    return figure


def _steps_over_size(axes: Axes, rows: Sequence[Scaling]) -> None:
    for row in rows:
        axes.plot(
            list(row.microseconds), list(row.microseconds.values()), marker="o", label=row.step
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
    axes.minorticks_off()
    ticks = (1, 2, 5, 10, 20, 50)
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(1, 200)
    axes.grid(color="#eeeeee")
    axes.set_xlabel("operations")
    axes.set_ylabel("µs per operation")
    axes.legend(loc="upper left", fontsize=7.5, ncols=2)
