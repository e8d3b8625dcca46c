"""`crosschip bench`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer

from crosschip.accuracy.error import UNIT
from crosschip.bench.agreement import errors_against
from crosschip.bench.peers import PeerRun, open_peer
from crosschip.bench.timing import Timing, interleave
from crosschip.cli import _options
from crosschip.cli._compiling import Compilation, load_compiled_file, with_options
from crosschip.cli._show import console, document, showing_progress, table
from crosschip.ir import Array, ElementType, Model
from crosschip.ir.types import FLOATS, NARROW_FLOATS
from crosschip.runtime.artifact.container import is_shipped

OURS = "crosschip"
_REAL = FLOATS | NARROW_FLOATS

_MEANINGFUL = ("model", "runs", "input", "shape", "seed", "budget", "as_json")
"""The parameters that apply to a compiled model."""


@with_options(Compilation)
def command(
    context: typer.Context,
    model: _options.ModelPath,
    compilation: Compilation,
    against: Annotated[
        str, typer.Option(help="Engines to call without crosschip, as in openvino.")
    ] = "",
    runs: Annotated[int, typer.Option(min=1, help="The number of runs of each.")] = 50,
    as_json: _options.Json = False,
) -> None:
    """Time a model on devices, in turn with engines that run the same file directly.

    A file that `crosschip compile` wrote is timed as it is, with no engine beside it.
    """
    peers: dict[str, PeerRun] = {}
    if is_shipped(model):
        limits = _options.budget(compilation.budget)
        compiled = load_compiled_file(
            model, context, _MEANINGFUL, limits, compilation.threads, compilation.performance
        )
        inputs = compilation.inputs(compiled.placement.model)
        threads = compiled.options.threads
    else:
        threads = compilation.configuration().threads
        loaded = compilation.load(model)
        inputs = compilation.inputs(loaded)
        for engine in filter(None, against.split(",")):
            with showing_progress(f"compiling with {engine} directly"):
                peers[engine] = open_peer(engine)(model, inputs, threads)
        shapes = {name: array.shape for name, array in inputs.items()}
        compiled = compilation.compile(loaded, shapes)

    def run_once(exposed: Model) -> Mapping[str, Array]:
        with compilation.compile(exposed, shapes) as other:
            return other.run(inputs)

    with compiled, showing_progress(f"running {compiled.placement.model.name}"):
        seconds = interleave({OURS: lambda: compiled.run(inputs), **peers}, runs)
        outputs = compiled.run(inputs)
        theirs = {engine: run() for engine, run in peers.items()}
        errors = errors_against(theirs, outputs, loaded, inputs, run_once) if theirs else {}
    report = _report(seconds, errors)
    report.update(model=str(model), runs=runs, threads=threads, not_finite=_not_finite(outputs))
    if as_json:
        document(report)
    else:
        _print(report)


def _not_finite(outputs: Mapping[str, Array]) -> dict[str, dict[str, int]]:
    """Return the number of elements that are not finite, of each output with any."""
    counts_by_output = {}
    for name, value in outputs.items():
        if isinstance(value, np.ndarray) and ElementType.of(value.dtype) in _REAL:
            real = value.astype(np.float64)
            counts = {"nan": int(np.isnan(real).sum()), "infinite": int(np.isinf(real).sum())}
            if any(counts.values()):
                counts_by_output[name] = counts | {"elements": value.size}
    return counts_by_output


def _report(seconds: Mapping[str, list[float]], errors: Mapping[str, float]) -> dict[str, object]:
    timings = {name: Timing.of(times) for name, times in seconds.items()}
    ours = timings[OURS]
    return {
        OURS: asdict(ours),
        "error_unit": UNIT,
        "against": {
            engine: {
                **asdict(timings[engine]),
                "ratio": timings[engine].median_ms / ours.median_ms,
                "error": error if math.isfinite(error) else None,
            }
            for engine, error in errors.items()
        },
    }


def _shown(error: float | None) -> str:
    return "infinite" if error is None else f"{error:.1e}"


def _print(report: Mapping[str, object]) -> None:
    ours, against = report[OURS], report["against"]
    assert isinstance(ours, dict), "_report made it"
    assert isinstance(against, dict), "_report made it"
    columns = ("engine", "median ms", "90 % ms", "best ms", "ratio to ours", "our error")
    rows = [
        (
            name,
            f"{t['median_ms']:.3f}",
            f"{t['p90_ms']:.3f}",
            f"{t['best_ms']:.3f}",
            f"{t.get('ratio', 1):.3f}",
            _shown(t["error"]) if "error" in t else "",
        )
        for name, t in {OURS: ours, **against}.items()
    ]
    compared = len(columns) if against else 4
    table(
        f"{report['model']}: {report['runs']} runs each, "
        + (f"{report['threads']} threads" if report["threads"] else "threads left to the engines"),
        columns[:compared],
        [row[:compared] for row in rows],
        numbers=",".join(columns[1:]),
    )
    if against:
        console.print(f"our error against the engine: {UNIT}", highlight=False)
    not_finite = report["not_finite"]
    assert isinstance(not_finite, dict), "the command made it"
    for name, counts in not_finite.items():
        listed = ", ".join(f"{counts[kind]} {kind}" for kind in ("nan", "infinite") if counts[kind])
        console.print(
            f"output {name!r} holds what is no number: {listed} of {counts['elements']} elements; "
            f"what was timed may not be what you want to time",
            highlight=False,
        )
