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
from crosschip.runtime.inputs import random_inputs

OURS = "crosschip"


def command(
    model: _options.Model,
    devices: _options.Devices = "auto",
    against: Annotated[str, typer.Option(help="Engines to call directly, as in openvino.")] = "",
    runs: Annotated[int, typer.Option(min=1, help="How often to run each.")] = 50,
    shape: _options.Shapes = None,
    threads: _options.Threads = None,
    precision: _options.Precision = "float32",
    use_cache: _options.UseCache = True,
    as_json: _options.Json = False,
) -> None:
    """Time a model on devices, in turn with engines that run the same file directly."""
    threads = threads or os.cpu_count()
    loaded = crosschip.load(model)
    inputs = random_inputs(loaded, _options.shapes(shape))
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
    """The largest difference of two results, relative to the largest absolute value."""
    scale = max(float(np.max(np.abs(array), initial=0)) for array in theirs)
    distances = [
        float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0))
        for a, b in zip(ours, theirs, strict=True)
    ]
    return max(distances) / scale if scale else max(distances)


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
                f"{t['largest_difference']:.1e}" if t.get("largest_difference") is not None else "",
            )
            for name, t in {OURS: ours, **against}.items()
        ],
        numbers="median ms,90 % ms,best ms,ratio to ours,largest difference",
    )
