"""`crosschip profile`."""

from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli._compiling import Compilation, with_options
from crosschip.cli._options import Json, ModelPath
from crosschip.cli._show import console, document, showing_progress, table

_MEANINGFUL = (
    *("model", "input", "shape", "seed", "budget"),
    *("runs", "warm_up", "top", "trace", "as_json"),
)
"""The parameters that mean something for a model that is compiled already."""


@with_options(Compilation)
def command(
    context: typer.Context,
    model: ModelPath,
    compilation: Compilation,
    runs: Annotated[int, typer.Option(min=1, help="The number of measured runs.")] = 10,
    warm_up: Annotated[
        int, typer.Option(min=0, help="The number of warm-up runs before them.")
    ] = 2,
    top: Annotated[int, typer.Option(min=0, help="The number of steps to list; 0 for all.")] = 30,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write the runs to this file, for ui.perfetto.dev and chrome://tracing."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say where the time of a run goes: segments, steps of engines, copies, waiting.

    A file that `crosschip compile` wrote is profiled as it is.
    """
    compiled, inputs = compilation.load_or_compile(model, context, _MEANINGFUL)
    with compiled, showing_progress(f"profiling {compiled.placement.model.name}"):
        profile = compiled.profile(inputs, runs=runs, warm_up=warm_up)
    if trace:
        profile.write_trace(trace)
    if as_json:
        document({**profile.document(), "trace": str(trace) if trace else None})
        return
    for title, columns, rows, numbers in profile.tables(top or None):
        table(title, columns, rows, numbers)
    console.print(
        f"a run takes {profile.seconds * 1e3:.3f} ms, the mean of {runs}"
        + (f"; the trace is in {trace}" if trace else ""),
        highlight=False,
    )
