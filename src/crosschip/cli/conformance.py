"""`crosschip conformance`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.live import Live
from rich.table import Table

from crosschip.cli import _options
from crosschip.cli._compiling import Engines, with_options
from crosschip.cli._show import console, document, messages, table, write
from crosschip.conformance import Case, Report, Result, Verdict, run_cases
from crosschip.conformance.cases import DEVICE
from crosschip.conformance.comparison import compare
from crosschip.conformance.export import export, export_check
from crosschip.conformance.journal import Journal
from crosschip.conformance.junit import to_junit
from crosschip.conformance.page import to_html
from crosschip.conformance.pool import OnResult
from crosschip.conformance.report import Entry, reasons
from crosschip.conformance.runner import COMPILE_TIMEOUT, TIMEOUT, OnWait
from crosschip.conformance.selection import cases_to_take, chosen_cases
from crosschip.hal import Sizes
from crosschip.ir import InputError

_COLUMNS = ("pass", "unsupported", "fail", "excluded", "not_run")
_SECONDS_BETWEEN_LINES = 10
_INTERRUPTED = 130


@with_options(Engines)
def command(
    *,
    device: Annotated[
        str | None, typer.Argument(help="The device, or its class as in my_package:MyDevice.")
    ] = None,
    operator: Annotated[
        list[str] | None, typer.Option(help="Only cases of this operator; may be repeated.")
    ] = None,
    element_type: Annotated[
        str | None, typer.Option("--type", help="Only cases of this element type.")
    ] = None,
    case: Annotated[
        str | None, typer.Option(help="Only the case of this id, or those like CONV_2D/*/float16.")
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="The number of random cases that the device supports; failing ones are shrunk.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run only a few cases of each operator.")
    ] = False,
    only_list: Annotated[
        bool, typer.Option("--list", help="Print the ids of the cases; run none.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="With --case: write model, inputs and expected outputs.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of random elements.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="The number of processes that run cases.")] = 1,
    timeout: Annotated[
        float, typer.Option(help="Seconds after which a case hangs, besides compiling.")
    ] = TIMEOUT,
    compile_timeout: Annotated[
        float, typer.Option(help="Seconds after which compiling hangs.")
    ] = COMPILE_TIMEOUT,
    together: Annotated[
        int,
        typer.Option(
            min=1, help="Operations compiled as one program, where a compiler takes seconds."
        ),
    ] = 1,
    budget: Annotated[
        float | None,
        typer.Option(help="Seconds for each operator; its remaining cases are not run."),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Store results in this file, and skip the cases that it already holds."),
    ] = None,
    claims: Annotated[
        Path | None,
        typer.Option(
            help="The file of exclusions and accuracy, if it is not next to the device's module."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page for publication to this file.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    comparison: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", help="Report the changes between two JSON reports."),
    ] = None,
    engines: Engines,
    as_json: _options.Json = False,
) -> None:
    """Run the conformance kit on a device; exit status 1 if anything fails."""
    if comparison:
        _compare(*comparison, as_json)
        return
    if device is None and not (only_list or (save and case)):
        raise typer.BadParameter("name a device", param_hint="DEVICE")
    operators = operator or ()
    chosen = chosen_cases(operators, element_type, case, random, seed, quick=quick)
    if save:
        saved, *others = chosen
        if case is None or others:
            raise InputError(f"--save needs --case with one id; there are {1 + len(others)} cases")
        chosen = iter([saved])
        if saved.operator != DEVICE:
            export(saved, seed, save)
        elif device is None:
            raise InputError(f"--save {saved.id} needs the device, whose operators it is made of")
    if only_list:
        _list(chosen, as_json)
    if device is None or only_list:
        return
    configuration = engines.configuration([device])
    options = configuration.options(Sizes())
    properties = configuration.properties.get(device)
    if save and saved.operator == DEVICE:
        export_check(saved, device, properties or {}, options, save)
    with ExitStack() as opened:
        journal = (
            opened.enter_context(Journal(resume, device, seed, options, properties))
            if resume
            else None
        )
        counted = None if case else random
        show, wait = opened.enter_context(_live())

        def on_result(ran: Case, result: Result) -> None:
            if journal:
                journal.add(ran, result)
            show(ran, result)

        report = run_cases(
            device,
            cases_to_take(counted, seed, operators, element_type) if counted else chosen,
            limit=counted,
            jobs=jobs,
            seed=seed,
            timeout=timeout,
            compile_timeout=compile_timeout,
            together=together,
            budget=budget,
            claims=claims,
            options=options,
            properties=properties,
            done=journal.done if journal else None,
            on_result=on_result,
            on_wait=wait,
        )
    for path, text in ((html, to_html), (junit, to_junit)):
        if path:
            write(path, text(report))
    if as_json:
        document(report.document())
    else:
        _print(report)
    if not report.whole or report.failed:
        raise typer.Exit(1 if report.whole else _INTERRUPTED)


def _list(cases: Iterable[Case], as_json: bool) -> None:
    if as_json:
        document([{"id": each.id, "type": each.element_type} for each in cases])
    else:
        for each in cases:
            console.print(each.id, highlight=False, soft_wrap=True)


@contextmanager
def _live() -> Iterator[tuple[OnResult, OnWait]]:
    """Show counts while cases run: in place on a terminal, in a log from time to time."""
    counts = dict.fromkeys(_COLUMNS, 0)
    current, lasts, last_line = "", "", monotonic()

    def shown() -> Table:
        title = f"{sum(counts.values())} cases{lasts}"
        grid = Table("operator", *_COLUMNS, title=title)
        grid.add_row(current, *map(str, counts.values()))
        return grid

    def say() -> None:
        nonlocal last_line
        if not messages.is_terminal and monotonic() - last_line > _SECONDS_BETWEEN_LINES:
            last_line = monotonic()
            done = f"{sum(counts.values())} cases, {counts['fail']} failed"
            messages.print(f"{done}: {current}{lasts}", highlight=False)

    def on_result(case: Case, result: Result) -> None:
        nonlocal current, lasts
        current, lasts = case.operator, ""
        counts[result.verdict.value] += 1
        say()

    def on_wait(seconds: float, compiles: bool) -> None:
        nonlocal lasts
        lasts = f", {'compiling' if compiles else 'running'} for {seconds:.0f} s"
        say()

    if not messages.is_terminal:
        yield on_result, on_wait
        return
    with Live(get_renderable=shown, console=messages, transient=True, refresh_per_second=8):
        yield on_result, on_wait


def _print(report: Report) -> None:
    shown = [column for column in _COLUMNS if report.counts[column]]
    table(
        report.title,
        ("operator", *shown, "why not"),
        [_row(name, entries, shown) for name, entries in report.by_operator().items()],
        numbers=",".join(shown),
    )
    for entry in report.failed:
        console.print(f"FAIL {entry.id}: {entry.detail}", highlight=False)
        if entry.use:
            console.print(f"     the use: {entry.use}", highlight=False)
        if entry.smallest:
            console.print(f"     the smallest like it: {entry.smallest}", highlight=False)
    counts = ", ".join(f"{report.counts[name]} {name.replace('_', ' ')}" for name in _COLUMNS)
    console.print(f"{len(report.entries)} cases: {counts}", highlight=False)
    if report.validation:
        right = sum(entry.verdict is Verdict.PASS for entry in report.validation)
        total = len(report.validation)
        console.print(f"crosschip's own validation: {right} of {total} cases pass", highlight=False)
    if not report.whole:
        console.print("The run was interrupted. With --resume FILE, the next one goes on.")


def _row(name: str, entries: Sequence[Entry], shown: Sequence[str]) -> tuple[object, ...]:
    verdicts = [entry.verdict.value for entry in entries]
    why = [reason.removeprefix(name).lstrip(".: ") for reason, _ in reasons(entries)]
    more = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
    counts = (verdicts.count(column) or "" for column in shown)
    return name, *counts, f"{why[0]}{more}" if why else ""


def _compare(before: Path, after: Path, as_json: bool) -> None:
    comparison = compare(before, after)
    if as_json:
        document(comparison)
    else:
        rows = [
            (change, len(ids), ", ".join(ids[:3])) for change, ids in comparison["changed"].items()
        ]
        rows += [
            (name, len(comparison[name]), ", ".join(comparison[name][:3]))
            for name in ("new", "gone")
        ]
        table("What changed", ("change", "cases", "such as"), rows, numbers="cases")
    if comparison["worse"]:
        raise typer.Exit(1)
