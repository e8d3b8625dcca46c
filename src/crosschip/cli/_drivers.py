"""Output of commands about driver processes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from crosschip.cli._show import console, table
from crosschip.drivers.client.monitor import OFFLINE, DriverReport, Monitor
from crosschip.drivers.protocol.messages import ClientStatus, Figures
from crosschip.ir.text import legible

_COLUMNS = (
    *("driver", "state", "process", "clients", "queue", "runs/s"),
    *("ms 50/90/99 %", "MB", "restarts"),
)
_WORDS = 2
"""The number of text columns; the others are of numbers."""

_SHORTEST, _LONGEST, _LONGEST_REASON = 8, 40, 300
"""The minimum width of the first column; the maximum lengths of a command and of a reason."""

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))

Rates = Mapping[tuple[Path, int], float]
"""The runs per second of each client, by the driver's socket and the client's process."""


def show(title: str, reports: Sequence[DriverReport], rates: Rates | None = None) -> None:
    """Print drivers, and the reasons of those that died.

    Args:
        title: the title of the table.
        reports: the reports of the drivers.
        rates: the rates of their clients; `None` to leave the clients out.
    """
    if console.is_terminal:
        console.print(_view(title, reports, rates))
        return
    table(title, _COLUMNS, _rows(reports, rates), ",".join(_COLUMNS[_WORDS:]))
    if lately := [row for report in reports for row in _last_death(report)]:
        table("Lately", ("driver", "when", "what"), lately)


def summary(report: DriverReport) -> str:
    """Return a driver in one line: state, restarts, the last reason."""
    words = [report.state]
    if report.process is not None:
        words.append(f"process {report.process}")
    if report.figures:
        words.append(_plural(len(report.figures.clients), "client"))
    if report.restarts:
        words.append(_plural(report.restarts, "restart"))
    if report.deaths:
        last = report.deaths[-1]
        why = last.reason.partition(";")[0]
        words.append(f"{_duration(time.time() - last.time)} ago {legible(why)}")
    elif report.problem:
        words.append(short(report.problem))
    return ", ".join(words)


def watch(watcher: Monitor, interval: float, count: int | None) -> None:
    """Show drivers repeatedly: in place on a terminal, otherwise consecutively."""
    looks = _observe(watcher, interval, count)
    if not console.is_terminal:
        for look in looks:
            show(*look)
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for look in looks:
            live.update(_view(*look), refresh=True)


def _observe(
    watcher: Monitor, interval: float, count: int | None
) -> Iterator[tuple[str, Sequence[DriverReport], Rates]]:
    before: Mapping[tuple[Path, int | None, int], int] = {}
    moment = time.monotonic()
    for number in itertools.count(1):
        reports, now = watcher.look(), time.monotonic()
        runs = _runs(reports)
        rates = {
            (path, client): max(0, runs[path, driver, client] - before[path, driver, client])
            / (now - moment)
            for path, driver, client in runs.keys() & before.keys()
        }
        yield time.strftime("%H:%M:%S"), reports, rates
        if number == count:
            return
        before, moment = runs, now
        time.sleep(interval)


def _runs(reports: Sequence[DriverReport]) -> Mapping[tuple[Path, int | None, int], int]:
    """Return the runs of each client, by the driver's socket and process, and the client."""
    return {
        (report.path, report.process, client.process): client.runs
        for report in reports
        if report.figures
        for client in report.figures.clients
    }


def _view(title: str, reports: Sequence[DriverReport], rates: Rates | None) -> RenderableType:
    """Return the view of drivers for a terminal; names are cut if needed, numbers are not."""
    shown = Table(
        title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0)
    )
    rows = list(_rows(reports, rates))
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    available = console.width - sum(widths[1:]) - len(widths)
    widths[0] = max(_SHORTEST, min(widths[0], available))
    for index, column in enumerate(_COLUMNS):
        justify: JustifyMethod = "left" if index < _WORDS else "right"
        shown.add_column(
            column, justify=justify, width=widths[index], no_wrap=True, overflow="ellipsis"
        )
    for row in rows:
        shown.add_row(*map(Text, row))
    lines = [
        Text.assemble("\n", (name, "bold"), f", {when}: {what}")
        for report in reports
        for name, when, what in _last_death(report)
    ]
    return Group(shown, *lines) if reports else Group(title, "no driver runs")


def _rows(reports: Sequence[DriverReport], rates: Rates | None) -> Iterator[Sequence[str]]:
    for report in reports:
        yield _row(report)
        if report.figures and rates is not None:
            for client in report.figures.clients:
                yield _client(client, rates.get((report.path, client.process)))


def _row(report: DriverReport) -> Sequence[str]:
    figures = ("", "", "", "", "") if report.figures is None else _client_numbers(report.figures)
    process = "" if report.process is None else f"{report.process}"
    return (_name(report), report.state, process, *figures, f"{report.restarts}")


def _client_numbers(figures: Figures) -> Sequence[str]:
    return (
        f"{len(figures.clients)}",
        f"{figures.waiting}",
        f"{figures.rate:.1f}",
        "/".join(_milliseconds(figures.latency[each]) for each in figures.latency),
        f"{figures.memory / 2**20:.0f}",
    )


def _client(client: ClientStatus, rate: float | None) -> Sequence[str]:
    return (
        f"  {_command(client)}",
        _plural(client.programs, "program"),
        f"{client.process}",
        "",
        f"{client.waiting}",
        "" if rate is None else f"{rate:.1f}",
        "",
        f"{client.memory / 2**20:.0f}",
        "",
    )


def _command(client: ClientStatus) -> str:
    """Return the command line of a client's process, if it is readable."""
    try:
        words = Path(f"/proc/{client.process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return legible(client.name)
    parts = [word.decode(errors="replace") for word in words if word]
    if len(parts) > 1 and Path(parts[0]).name.startswith("python") and not parts[1].startswith("-"):
        del parts[0]  # the script says more than what runs it
    return legible(" ".join([Path(parts[0]).name, *parts[1:]]) if parts else client.name)[:_LONGEST]


def _last_death(report: DriverReport) -> Iterator[tuple[str, str, str]]:
    """Return the last failure of a driver: its name, the time and the reason."""
    last = report.deaths[-1] if report.deaths else None
    if report.state == OFFLINE and not (last and report.problem == last.reason):
        yield _name(report), "now", short(report.problem)
    if last:
        yield _name(report), f"{_duration(time.time() - last.time)} ago", short(last.reason)


def short(reason: str) -> str:
    """Return a printable reason, shortened if it is long."""
    return legible(reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…")


def _name(report: DriverReport) -> str:
    return legible(report.device) or str(report.path)


def _milliseconds(seconds: float) -> str:
    milliseconds = seconds * 1e3
    return f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.2g}"


def _plural(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    size, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{max(0, seconds) // size:.0f} {unit}"
