"""`crosschip bench`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import typer

from crosschip.bench.agreement import ErrorMeasure
from crosschip.bench.peers import PeerRun, open_peer
from crosschip.bench.results import OURS, Benchmark
from crosschip.bench.timing import Timing, interleave
from crosschip.cli import _options
from crosschip.cli._compiling import Compilation, load_compiled_file, with_options
from crosschip.cli._show import console, document, table
from crosschip.ir import Array, ElementType, Model
from crosschip.ir.types import FLOATS, NARROW_FLOATS
from crosschip.progress import task
from crosschip.runtime.artifact.container import looks_like_shipped_file

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
    """Time a model on devices, alternating with engines that run the same file directly.

    A file that `crosschip compile` wrote is timed without compiling, and without engines.
    """
    peers: dict[str, PeerRun] = {}
    errors: dict[str, float] = {}
    if looks_like_shipped_file(model):
        limits = _options.budget(compilation.budget)
        compiled = load_compiled_file(
            model, context, _MEANINGFUL, limits, compilation.threads, compilation.performance
        )
        inputs = compilation.inputs(compiled.placement.model)
        threads = compiled.options.threads
    else:
        threads = compilation.configuration().threads
        loaded = compilation.load(model)
        if against and compilation.takes_pictures:
            raise typer.BadParameter(
                "engines run the file as it is, which takes no pictures", param_hint="--against"
            )
        inputs = compilation.inputs(loaded)
        for engine in filter(None, against.split(",")):
            with task(f"compiling with {engine} directly"):
                peers[engine] = open_peer(engine)(model, inputs, threads)
        shapes = {name: array.shape for name, array in inputs.items()}
        compiled = compilation.compile(loaded, shapes)

    def run_once(exposed: Model) -> Mapping[str, Array]:
        with compilation.compile(exposed, shapes) as other:
            return other.run(inputs)

    with compiled:
        seconds = interleave({OURS: lambda: compiled.run(inputs), **peers}, runs)
        outputs = compiled.run(inputs)
        theirs = {engine: dict(zip(outputs, run(), strict=True)) for engine, run in peers.items()}
        if theirs:
            measure = ErrorMeasure(loaded, inputs, run_once)
            errors = {name: measure.error(outputs, exact) for name, exact in theirs.items()}
    timings = {name: Timing.of(times) for name, times in seconds.items()}
    result = Benchmark(str(model), runs, threads, timings, errors, _not_finite(outputs))
    if as_json:
        document(result.document())
    else:
        title, columns, rows, numbers = result.table()
        table(title, columns, rows, ",".join(numbers))
        for note in result.notes():
            console.print(note, highlight=False)


def _not_finite(outputs: Mapping[str, Array]) -> dict[str, dict[str, int]]:
    """Return, by output, the number of elements that are not finite, if there are any."""
    counts_by_output = {}
    for name, value in outputs.items():
        if isinstance(value, np.ndarray) and ElementType.of(value.dtype) in _REAL:
            real = value.astype(np.float64)
            counts = {"nan": int(np.isnan(real).sum()), "infinite": int(np.isinf(real).sum())}
            if any(counts.values()):
                counts_by_output[name] = counts | {"elements": value.size}
    return counts_by_output
