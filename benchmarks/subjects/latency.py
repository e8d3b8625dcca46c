"""Latency on one device, against the engine called directly.

Batch 1. The engine reads the same file or, if it does not support the format, a file of the same
network with the same weights (ONNX Runtime reads `.onnx` only, OpenVINO no Paddle 3). Both have the
same number of threads, one for each core, and fixed shapes, compute in float32 and return outputs
that the caller owns. Before timing, both outputs are compared with Paddle's. The `.onnx` files of
the PP-OCR networks express some activations as four operations each, so ONNX Runtime takes longer
for them than crosschip on ONNX Runtime for the `.pdmodel`.

The runs alternate in bursts of at least five, in random order. A burst begins when all threads are
idle, because ONNX Runtime's idle threads spin for some 30 ms and would occupy a core during the
next burst. Both models are compiled again for each block of runs, because the memory addresses of
the weights change the time by one or two per cent until the next compilation. The ratio is the
median over the blocks, each of which compares the medians of its runs; blocks are added, for some
seconds, until its standard error (after ±) is below 0.5 %. Blocks in which other processes used 5 %
of the machine or more are excluded if there are enough others; if not, the model is measured again
at the end. The last column but one is the share of other processes in the most disturbed block that
counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from benchmarks.comparison import CALM, Estimate, compare
from benchmarks.engines import difference, engines, run_of_engine, run_of_ours
from benchmarks.models import ModelFile, Oracle, model_files
from benchmarks.subject import Column, Row
from crosschip.bench.timing import Run
from crosschip.ir import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMIT = 0.97
REQUIREMENT = (
    f"the engine's median time is at least {LIMIT:g} times crosschip's (above 1: crosschip is "
    "faster)"
)

_SURE = 0.005
_PATIENCE_SECONDS = 6.0
_TOLERANCE = 1e-3
"""The most that may lie between two ways to compute the same; with more, it is not the same."""

_MARKS = {".pdmodel": ("#1f6fb4", "o"), ".json": ("#2e9e5b", "s"), ".onnx": ("#d9822b", "D")}
"""The colour and the mark of each file format."""


@dataclass(frozen=True)
class Latency(Row):
    """One model file on one device."""

    device: Annotated[str, Column("device")]
    network: Annotated[str, Column("network")]
    format: Annotated[str, Column("file")]
    directly: Annotated[str, Column("engine reads")]
    engine_ms: Annotated[float, Column("engine ms", ".3f")]
    ours_ms: Annotated[float, Column("crosschip ms", ".3f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool:
        return self.ratio.value >= LIMIT


def measure(*, quick: bool) -> Iterator[Latency]:
    """Each model file on each device with an engine."""
    again: list[tuple[ModelFile, str]] = []
    for device in engines():
        for file in model_files(quick=quick):
            row = _measure(file, device, quick=quick)
            if row.others < CALM or quick:
                yield row
            else:
                again.append((file, device))
    for file, device in again:
        yield _measure(file, device, quick=quick)


def _measure(file: ModelFile, device: str, *, quick: bool) -> Latency:
    oracle = file.oracle(1)
    directly = file.directly[device]
    threads = os.cpu_count() or 1
    ours = partial(run_of_ours, file.path, device, oracle.inputs, threads)
    direct = partial(run_of_engine, directly, device, oracle.inputs, threads)
    for run in (ours(), direct()):
        _check(f"{file.network} {file.format} on {device}", run, oracle)
    result = compare(
        ours,
        direct,
        seconds=0.2 if quick else 0.5,
        blocks=2 if quick else 4,
        error=_SURE,
        patience=0 if quick else _PATIENCE_SECONDS,
    )
    figures = result.direct_ms, result.ours_ms, result.ratio, result.others
    return Latency(device, file.network, file.format, directly.suffix, *figures)


def _check(what: str, run: Run, oracle: Oracle) -> None:
    made = run()
    outputs = list[Array](made.values() if isinstance(made, Mapping) else made)  # type: ignore[call-overload]  # a sequence of arrays
    if not difference(outputs, oracle.outputs) <= _TOLERANCE:
        raise RuntimeError(f"{what}: computes something else than Paddle; its time says nothing")


def draw(rows: Sequence[Latency]) -> Figure:
    """Each network's ratio on each device, a mark a file format."""
    from benchmarks import plot  # here, for nothing else needs matplotlib

    devices = list(dict.fromkeys(row.device for row in rows))
    figure, systems = plot.beside([f"Latency on {device}" for device in devices], 4.6)
    for axes, device in zip(systems, devices, strict=True):
        _ratios(axes, [row for row in rows if row.device == device])
        plot.limit(axes, LIMIT)
    return figure


def _ratios(axes: Axes, rows: Sequence[Latency]) -> None:
    networks = list(dict.fromkeys(row.network for row in rows))
    formats = [format for format in _MARKS if any(row.format == format for row in rows)]
    for place, format in enumerate(formats):
        shift = (place - (len(formats) - 1) / 2) * 0.24
        shown = [row for row in rows if row.format == format]
        colour, mark = _MARKS[format]
        axes.errorbar(
            [row.ratio.value for row in shown],
            [networks.index(row.network) + shift for row in shown],
            xerr=[row.ratio.error for row in shown],
            fmt=mark,
            color=colour,
            markersize=5,
            elinewidth=1,
            label=format,
        )
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.set_yticks(range(len(networks)), networks)
    axes.set_ylim(len(networks) - 0.5, -0.5)
    axes.grid(axis="y", color="#eeeeee")
    axes.set_xlabel(f"engine's time / ours; right of 1: we are faster; dashed: {LIMIT:g}")
    axes.legend(loc="best")
