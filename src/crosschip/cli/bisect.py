"""`crosschip bisect`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Annotated

import typer

from crosschip.accuracy.error import UNIT
from crosschip.bisect import Report, find_failing_operators
from crosschip.bisect.report import format_difference, format_error, slots_of
from crosschip.cli import _options
from crosschip.cli._compiling import Engines, with_options
from crosschip.cli._drivers import short
from crosschip.cli._show import console, document, messages, table
from crosschip.ir.text import legible
from crosschip.runtime.inputs import read_array

_SECONDS_BETWEEN_LINES = 10


@with_options(Engines)
def command(
    *,
    model: _options.ModelPath,
    device: Annotated[str, typer.Option(help="The device to check.")],
    against: Annotated[
        str, typer.Option(help="The device whose results count as right.")
    ] = "reference",
    engines: Engines,
    input: _options.Inputs = None,
    shape: _options.Shapes = None,
    seed: _options.Seed = 0,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="The allowed difference of an element, relative to the largest element of the "
            "output; the difference that rounding explains if left out.",
        ),
    ] = None,
    mixed_precision: _options.MixedPrecision = None,
    isolate: Annotated[
        bool,
        typer.Option(help="Run the device in a separate process, which may crash."),
    ] = True,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="Try each operation separately, regardless of the number of runs."
        ),
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds after which a run hangs.")] = 60,
    compile_timeout: Annotated[
        float, typer.Option(help="Seconds after which a compilation hangs.")
    ] = 600,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="The maximum number of seconds in total; the results so far are reported."
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            min=1, help="The maximum number of runs in total; the results so far are reported."
        ),
    ] = None,
    budget: _options.Limits = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write a page, and a model with inputs for each wrong operator, to this folder."
        ),
    ] = None,
    as_json: _options.Json = False,
) -> None:
    """Find the operators whose results on a device are wrong.

    The exit status is 1 if anything is wrong, or the search has not come to its end.
    """
    limits = _options.budget(budget)
    arrays = {name: read_array(path) for name, path in _options.files(input).items()}
    shapes = {**_options.shapes(shape), **_options.input_shapes(input)}
    with _progress() as on_trial:
        report = find_failing_operators(
            model,
            device,
            against=against,
            inputs=arrays,
            shapes=shapes,
            seed=seed,
            tolerance=tolerance,
            isolate=isolate,
            thorough=thorough,
            timeout=timeout,
            compile_timeout=compile_timeout,
            seconds=seconds,
            runs=runs,
            configuration=engines.configuration([device, against]),
            mixed_precision=_options.configuration(mixed_precision),
            budget=limits,
            on_trial=on_trial,
        )
    written = report.write(save) if save else []
    if as_json:
        document({**report.document(), "files": list(map(str, written))})
    else:
        _print(report)
        for path in written:
            console.print(f"wrote {path}", highlight=False, soft_wrap=True)
    if report.failing_operators or not report.explained or not report.whole:
        raise typer.Exit(1)


@contextmanager
def _progress() -> Iterator[Callable[[int, str], None]]:
    """Show each run and its duration: on a terminal in one line, in a log from time to time."""
    now = "recording what is right"
    begin = last_line = monotonic()

    def line() -> str:
        return f"{now} ({monotonic() - begin:.0f} s)"

    def tell(number: int, words: str) -> None:
        nonlocal now, begin
        now, begin = f"run {number}: {legible(words)}", monotonic()

    def say() -> None:
        nonlocal last_line
        if monotonic() - last_line > _SECONDS_BETWEEN_LINES:
            last_line = monotonic()
            messages.print(line(), highlight=False)

    ended = Event()
    with messages.status(line()) if messages.is_terminal else nullcontext() as status:

        def show() -> None:
            while not ended.wait(1):
                if status is None:
                    say()
                else:
                    status.update(line())

        showing = Thread(target=show, daemon=True)
        showing.start()
        try:
            yield tell
        finally:
            ended.set()
            showing.join()


def _print(report: Report) -> None:
    for culprit in report.failing_operators:
        together = " (only together)" if len(culprit.operations) > 1 else ""
        console.print(f"{culprit.manner.upper()} {culprit.title}{together}", highlight=False)
        console.print(f"  {short(culprit.detail)}", highlight=False)
        if culprit.difference is not None:
            console.print(f"  {format_difference(culprit.difference)}", highlight=False)
        if culprit.shows is not None:
            seen = "shows" if culprit.shows else "does not show"
            console.print(f"  {seen} in the outputs of the model itself", highlight=False)
        for operation in culprit.operations:
            rows = [(slot, legible(value)) for slot, value in slots_of(operation).items()]
            table("", (operation.type, legible(operation.name)), rows)
    console.print(report.summary, highlight=False)
    if report.error is not None:
        summary = f"error of the outputs: {format_error(report.error)}"
        if report.mended is not None:
            summary += f"; with the culprits on {report.against}: {format_error(report.mended)}"
        console.print(f"{summary} ({UNIT})", highlight=False)
    if not report.explained:
        console.print("the outputs are still wrong then: something is not explained")
    for note in report.notes:
        console.print(legible(note), highlight=False)
