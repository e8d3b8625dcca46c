"""`crosschip conformance`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.table import Table

from crosschip.cli._options import Json
from crosschip.cli._show import console, document, messages, table
from crosschip.conformance import Case, Report, Result, all_cases, case_of, run_cases
from crosschip.conformance.comparison import compare
from crosschip.conformance.export import export
from crosschip.conformance.junit import to_junit
from crosschip.conformance.page import to_html
from crosschip.conformance.report import Entry, reasons
from crosschip.ir import InputError

_COLUMNS = ("pass", "unsupported", "fail", "excluded", "not_run")


def command(
    device: Annotated[
        str | None, typer.Argument(help="The device, or its class as in my_package:MyDevice.")
    ] = None,
    operator: Annotated[str | None, typer.Option(help="Only cases of this operator.")] = None,
    element_type: Annotated[
        str | None, typer.Option("--type", help="Only cases of this element type.")
    ] = None,
    case: Annotated[str | None, typer.Option(help="Only the case of this id.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="With --case: write model, inputs and expected outputs.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only a few cases an operator.")] = False,
    seed: Annotated[int, typer.Option(help="What random elements are made from.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes run cases.")] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds after which a case hangs.")] = 60,
    claims: Annotated[
        Path | None, typer.Option(help="Exclusions and accuracy, if not beside the device.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to publish there.")] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML there.")] = None,
    comparison: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--compare", help="Say what changed between two JSON reports."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the conformance kit on a device; exit status 1 if anything fails."""
    if comparison:
        _compare(*comparison, as_json)
        return
    if save and case:
        export(_named(case), seed, save)
    if device is None:
        if save and case:
            return
        raise typer.BadParameter("name a device", param_hint="DEVICE")
    chosen = [_named(case)] if case else list(all_cases(operator, element_type, quick=quick))
    if not chosen:
        raise InputError("there is no such case; `crosschip ops` lists the operators")
    with _live(len(chosen), show=not as_json) as on_result:
        report = run_cases(
            device,
            chosen,
            jobs=jobs,
            seed=seed,
            timeout=timeout,
            claims=claims,
            on_result=on_result,
        )
    for path, text in ((html, to_html), (junit, to_junit)):
        if path:
            _write(path, text(report))
    if as_json:
        document(report.document())
    else:
        _print(report)
    if report.failed:
        raise typer.Exit(1)


def _named(id: str) -> Case:
    try:
        return case_of(id)
    except KeyError:
        raise InputError(
            f"there is no case {id!r}; --json lists the ids of all, under `verdicts`"
        ) from None


@contextmanager
def _live(total: int, *, show: bool) -> Iterator[Any]:
    """Shows counts on a terminal while cases run; what is told each result."""
    counts = dict.fromkeys(_COLUMNS, 0)
    current = ""

    def shown() -> Table:
        grid = Table("operator", *_COLUMNS, title=f"{sum(counts.values())} of {total} cases")
        grid.add_row(current, *map(str, counts.values()))
        return grid

    def on_result(case: Case, result: Result) -> None:
        nonlocal current
        current = case.operator
        counts[result.verdict.value] += 1

    if not show or not messages.is_terminal:
        yield on_result
        return
    with Live(get_renderable=shown, console=messages, transient=True, refresh_per_second=8):
        yield on_result


def _print(report: Report) -> None:
    shown = [column for column in _COLUMNS if report.counts[column]]
    table(
        f"{report.device} {report.version}",
        ("operator", *shown, "why not"),
        [_row(name, entries, shown) for name, entries in report.by_operator().items()],
        numbers=",".join(shown),
    )
    for entry in report.failed:
        console.print(f"FAIL {entry.id}: {entry.detail}", highlight=False)
    counts = ", ".join(f"{report.counts[name]} {name.replace('_', ' ')}" for name in _COLUMNS)
    console.print(f"{len(report.entries)} cases: {counts}", highlight=False)


def _row(name: str, entries: Sequence[Entry], shown: Sequence[str]) -> tuple[object, ...]:
    verdicts = [entry.verdict.value for entry in entries]
    why = [reason.removeprefix(name).lstrip(".: ") for reason, _ in reasons(entries)]
    more = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
    counts = (verdicts.count(column) or "" for column in shown)
    return name, *counts, f"{why[0]}{more}" if why else ""


def _compare(before: Path, after: Path, as_json: bool) -> None:
    found = compare(before, after)
    if as_json:
        document(found)
    else:
        rows = [(change, len(ids), ", ".join(ids[:3])) for change, ids in found["changed"].items()]
        rows += [(name, len(found[name]), ", ".join(found[name][:3])) for name in ("new", "gone")]
        table("What changed", ("change", "cases", "such as"), rows, numbers="cases")
    if found["worse"]:
        raise typer.Exit(1)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
