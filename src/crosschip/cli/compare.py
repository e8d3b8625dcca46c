"""`crosschip compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosschip.cli import _options
from crosschip.cli._compiling import Engines, with_options
from crosschip.cli._pictures import read_value
from crosschip.cli._show import console, document, table
from crosschip.comparison import compare
from crosschip.comparison.picture import check_picture_file


@with_options(Engines)
def command(
    model: _options.ModelPath,
    engines: Engines,
    devices: _options.Devices = "auto",
    against: Annotated[
        str | None,
        typer.Option(help="Engines to call without crosschip, as in openvino; all if left out."),
    ] = None,
    input: _options.Inputs = None,
    shape: _options.Shapes = None,
    seed: _options.Seed = 0,
    runs: Annotated[int, typer.Option(min=1, help="The maximum number of runs of each.")] = 50,
    seconds: Annotated[
        float, typer.Option(help="The time for all runs; each has at least five.")
    ] = 30.0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Draw the times to this .svg or .png file.")
    ] = None,
    title: Annotated[str, typer.Option(help="The title of the picture.")] = "",
    use_cache: _options.UseCache = True,
    cache_dir: _options.CacheFolder = None,
    budget: _options.Limits = None,
    as_json: _options.Json = False,
) -> None:
    """Compare engines that read a model's file with devices and mixtures, and draw their times.

    Each engine runs the file itself. Each device runs the model alone and, if several then share
    the operations, before the others. All run in turns on the same inputs. Errors are against the
    `reference` device, or against the first engine if that would take too long.
    """
    if out is not None:
        check_picture_file(out)
    comparison = compare(
        model,
        devices,
        inputs={name: read_value(path) for name, path in _options.files(input).items()},
        shapes={**_options.input_shapes(input), **_options.shapes(shape)},
        engines=None if against is None else [name for name in against.split(",") if name],
        runs=runs,
        seconds=seconds,
        seed=seed,
        cache=_options.cache(use_cache, cache_dir),
        configuration=engines.configuration(),
        budget=_options.budget(budget),
    )
    if out is not None:
        comparison.save(out, title)
    if as_json:
        document(comparison.to_json())
    else:
        heading, columns, rows, numbers = comparison.table()
        table(heading, columns, rows, ",".join(numbers))
        for note in comparison.notes():
            console.print(note, highlight=False)
    if not comparison.timed:
        raise typer.Exit(1)
