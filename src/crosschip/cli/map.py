"""`crosschip map`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from crosschip.batch_inference import BatchJob, list_files
from crosschip.batch_inference.classes import Classes, read_labels
from crosschip.batch_inference.job import rate
from crosschip.batch_inference.mapping import BATCH_SIZE, OnError
from crosschip.batch_inference.result_files import Format
from crosschip.cli import _options
from crosschip.cli._compiling import Compilation, with_options
from crosschip.cli._pictures import Pictures
from crosschip.cli._show import console, document
from crosschip.ir import InputError
from crosschip.ir.text import legible
from crosschip.runtime.inputs import read_array

_MEANINGFUL = (
    *("model", "files", "out", "format", "top", "labels", "batch", "readers", "on_error"),
    *("input", "budget", "as_json", *(field.name for field in fields(Pictures))),
)
"""The parameters that apply to a compiled model."""

_WITHOUT_EFFECT = ("threads", "performance", "seed", "isolate", "use_cache", "cache_dir", "budget")
"""The options of compilation that results do not depend on."""


@with_options(Compilation)
def command(
    context: typer.Context,
    model: _options.ModelPath,
    files: Annotated[
        list[str],
        typer.Argument(help="Pictures and .npy files; patterns, folders, or .txt lists of them."),
    ],
    compilation: Compilation,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for results.")],
    format: Annotated[
        Format,
        typer.Option(
            help="Where outputs are: jsonl in results.jsonl, npy in a file of rows for each "
            "output, npz in a file for each file."
        ),
    ] = "jsonl",
    top: Annotated[
        int | None, typer.Option(min=1, help="Write so many classes with the highest scores.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="A file with the name of a class on each line, for --top.")
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, help="How many files share a run, if the model takes batches.")
    ] = BATCH_SIZE,
    readers: Annotated[
        int | None,
        typer.Option(min=1, help="How many threads read files; one for each processor by default."),
    ] = None,
    on_error: Annotated[
        OnError, typer.Option(help="What to do at a file that cannot be read.")
    ] = "skip",
    wait: Annotated[
        bool,
        typer.Option(
            help="Whether to wait until all devices have been tried; otherwise the device that is "
            "ready first begins, and the fastest goes on."
        ),
    ] = True,
    as_json: _options.Json = False,
) -> None:
    """Run a model on many files and write the results to a folder.

    The same command goes on where an earlier one stopped or was killed. The folder has a file
    results.jsonl, with a line for each file in order. The exit status is 1 if files were skipped.
    """
    classes = _classes(top, labels)
    paths = [path for path in list_files(files) if not _is_below(path, out)]
    constants = {n: read_array(path) for n, path in _options.files(compilation.input).items()}
    compiled, digest = compilation.load_or_compile_plain(model, context, _MEANINGFUL, wait=wait)
    settings = {"model": f"{compiled.name} {digest}", **_settings(compilation)}
    with (
        compiled,
        BatchJob(out, paths, settings, batch_size=batch, format=format, classes=classes) as job,
    ):
        begun, start = job.completed, perf_counter()
        try:
            job.run(
                compiled,
                compilation.preprocess(),
                constants=constants,
                readers=readers,
                on_error=on_error,
            )
        except BaseException:
            if 0 < job.completed < len(paths):
                print(
                    f"{job.completed:,} of {len(paths):,} files are done; the same command goes on "
                    f"from there",
                    file=sys.stderr,
                )
            raise
        report = _report(job, out, begun, perf_counter() - start)
    if as_json:
        document(report)
    else:
        _print(report)
    if report["errors"]:
        raise typer.Exit(1)


def _is_below(path: str, folder: Path) -> bool:
    """Return whether a file is in a folder, such as results that were files to map otherwise."""
    return os.path.abspath(path).startswith(os.path.join(os.path.abspath(folder), ""))


def _classes(top: int | None, labels: Path | None) -> Classes | None:
    if top is None:
        if labels is not None:
            raise InputError("--labels names the classes of --top, which is missing")
        return None
    return Classes(top, None if labels is None else read_labels(labels))


def _settings(compilation: Compilation) -> dict[str, object]:
    """Return the options of a compilation that results depend on, as JSON values."""
    values = {field.name: getattr(compilation, field.name) for field in fields(compilation)}
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in values.items()
        if name not in _WITHOUT_EFFECT and value not in (None, False)
    }


def _report(job: BatchJob, folder: Path, begun: int, seconds: float) -> Mapping[str, Any]:
    return {
        "folder": str(folder),
        "files": len(job.paths),
        "earlier": begun,
        "seconds": seconds,
        "errors": list(job.errors),
    }


def _print(report: Mapping[str, Any]) -> None:
    count = report["files"] - report["earlier"]
    speed = f", {rate(count, report['seconds'])}" if count else ""
    earlier = f", {report['earlier']:,} of them earlier" if report["earlier"] else ""
    bad = f"; {len(report['errors']):,} of them have an error" if report["errors"] else ""
    console.print(
        f"{legible(report['folder'])}: the results for {report['files']:,} files{earlier}{bad} "
        f"({report['seconds']:,.1f} s{speed})",
        highlight=False,
    )
