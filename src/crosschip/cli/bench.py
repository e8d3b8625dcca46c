"""`crosschip bench`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer

import crosschip
from crosschip.bench.peers import PeerRun, open_peer
from crosschip.bench.timing import Timing, interleave
from crosschip.cli import _options
from crosschip.cli._show import document, doing, table
from crosschip.ir import Array

OURS = "crosschip"


def command(
    model: _options.ModelPath,
    devices: _options.Devices = "auto",
    against: Annotated[str, typer.Option(help="Engines to call directly, as in openvino.")] = "",
    runs: Annotated[int, typer.Option(min=1, help="How often to run each.")] = 50,
    input: _options.Inputs = None,
    shape: _options.Shapes = None,
    seed: _options.Seed = 0,
    threads: _options.Threads = None,
    precision: _options.Precision = "float32",
    use_cache: _options.UseCache = True,
    property: _options.Properties = None,
    partition: _options.Partition = None,
    mixed_precision: _options.MixedPrecision = None,
    pin: _options.Pins = None,
    min_segment: _options.MinSegment = 1,
    max_segments: _options.MaxSegments = None,
    strict: _options.Strict = False,
    budget: _options.Limits = None,
    as_json: _options.Json = False,
) -> None:
    """Time a model on devices, in turn with engines that run the same file directly."""
    threads = threads or os.cpu_count()
    limits, settings = _options.budget(budget), _options.properties(property)
    loaded = crosschip.load(model, budget=limits)
    inputs = _options.inputs(loaded, input, _options.shapes(shape), seed)
    peers: dict[str, PeerRun] = {}
    for engine in filter(None, against.split(",")):
        with doing(f"compiling with {engine} directly"):
            peers[engine] = open_peer(engine)(model, inputs, threads)
    with (
        doing(f"compiling for {devices}"),
        crosschip.compile(
            loaded,
            devices,
            shapes={name: array.shape for name, array in inputs.items()},
            cache=use_cache,
            precision=precision,
            threads=threads,
            properties=settings,
            partition=_options.configuration(partition),
            mixed_precision=_options.configuration(mixed_precision),
            pin=_options.pins(pin),
            min_segment=min_segment,
            max_segments=max_segments,
            strict=strict,
            budget=limits,
        ) as compiled,
    ):
        seconds = interleave({OURS: lambda: compiled.run(inputs), **peers}, runs)
        ours = list(compiled.run(inputs).values())
    report = _report(seconds, {engine: _difference(ours, run()) for engine, run in peers.items()})
    report.update(model=str(model), runs=runs, threads=threads)
    if as_json:
        document(report)
    else:
        _print(report)


def _report(
    seconds: Mapping[str, list[float]], differences: Mapping[str, float]
) -> dict[str, object]:
    timings = {name: Timing.of(times) for name, times in seconds.items()}
    ours = timings[OURS]
    return {
        OURS: asdict(ours),
        "against": {
            engine: {
                **asdict(timings[engine]),
                "ratio": timings[engine].median_ms / ours.median_ms,
                "largest_difference": difference if math.isfinite(difference) else None,
            }
            for engine, difference in differences.items()
        },
    }


def _difference(ours: Sequence[Array], theirs: Sequence[Array]) -> float:
    """The largest difference of two results, relative to the largest absolute value.

    What is not finite must be the same in both; else the difference is infinite.
    """
    largest = scale = 0.0
    for a, b in zip(ours, theirs, strict=True):
        a, b = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return math.inf
        largest = max(largest, float(np.max(np.abs(a[finite] - b[finite]), initial=0)))
        scale = max(scale, float(np.max(np.abs(b[finite]), initial=0)))
    return largest / scale if scale else largest


def _shown(difference: float | None) -> str:
    return "infinite" if difference is None else f"{difference:.1e}"


def _print(report: Mapping[str, object]) -> None:
    ours, against = report[OURS], report["against"]
    assert isinstance(ours, dict), "_report made it"
    assert isinstance(against, dict), "_report made it"
    table(
        f"{report['model']}: {report['runs']} runs each, {report['threads']} threads",
        ("engine", "median ms", "90 % ms", "best ms", "ratio to ours", "largest difference"),
        [
            (
                name,
                f"{t['median_ms']:.3f}",
                f"{t['p90_ms']:.3f}",
                f"{t['best_ms']:.3f}",
                f"{t.get('ratio', 1):.3f}",
                _shown(t["largest_difference"]) if "largest_difference" in t else "",
            )
            for name, t in {OURS: ours, **against}.items()
        ],
        numbers="median ms,90 % ms,best ms,ratio to ours,largest difference",
    )
