"""Displays of running tasks: bars in a terminal or a notebook, lines in a log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from html import escape
from typing import Any, TextIO

from rich.console import Console
from rich.file_proxy import FileProxy
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from crosschip.ir.text import legible
from crosschip.progress import Observer, Task, is_in_notebook

_MOST_TASKS = 8
"""The maximum number of tasks, of all threads, that are shown at once."""

_BAR_COLUMNS = 24

_JOIN_SECONDS = 1.0
"""How long the end of the last task waits for the drawing thread.

An interruption between the acquisition of a lock and the `with` block leaves the lock held, so the
drawing thread, a daemon, may never end.
"""

_FEWEST_COLUMNS = 12
"""The minimum number of columns of a task's name."""


class Display(Observer):
    """A display of the tasks that take longer than `delay` seconds.

    A thread of its own draws every `interval` seconds while tasks run. While one of them measures
    times, it is drawn when it changes, in the measuring thread: so the drawing is no part of what
    is measured.
    """

    delay = 1.0
    interval = 0.1

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._tasks: list[Task] = []
        self._thread: threading.Thread | None = None
        self._drawn: list[Task] = []

    def on_start(self, task: Task) -> None:
        with self._condition:
            self._tasks.append(task)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="crosschip progress", daemon=True
                )
                self._thread.start()

    def on_change(self, task: Task) -> None:
        if task.measures:
            with self._condition:
                self._draw_slow()

    def on_end(self, task: Task) -> None:
        with self._condition:
            if task in self._tasks:
                self._tasks.remove(task)
            thread = None if self._tasks else self._stop()
        if thread is not None:
            thread.join(_JOIN_SECONDS)

    def close(self) -> None:
        """Erase what is shown, and forget all tasks."""
        with self._condition:
            self._tasks.clear()
            thread = self._stop()
        if thread is not None:
            thread.join(_JOIN_SECONDS)

    def draw(self, tasks: Sequence[Task]) -> None:
        """Show tasks in place of those that were drawn before."""
        raise NotImplementedError

    def erase(self) -> None:
        """Remove what was drawn."""

    def _stop(self) -> threading.Thread | None:
        """Erase what is shown; return the thread that draws, which then ends."""
        thread, self._thread = self._thread, None
        self._condition.notify_all()
        if self._drawn:
            self._drawn = []
            self.erase()
        return thread

    def _run(self) -> None:
        """Draw until no task runs, or another thread draws."""
        thread = threading.current_thread()
        with self._condition:
            self._condition.wait_for(lambda: self._thread is not thread, self.delay)
            while self._thread is thread:
                if not self._rests():
                    self._draw_slow()
                self._condition.wait_for(lambda: self._thread is not thread, self.interval)

    def _rests(self) -> bool:
        return any(task.measures and task in self._drawn for task in self._tasks)

    def _draw_slow(self) -> None:
        slow = [task for task in self._tasks if task.seconds >= self.delay]
        if slow:
            self._drawn = slow
            self.draw(slow)


class TerminalBars(Display):
    """Bars in the last lines of a terminal.

    Args:
        console: the console of the terminal.
    """

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._live: Live | None = None
        self._proxy: FileProxy | None = None

    def draw(self, tasks: Sequence[Task]) -> None:
        if self._live is None:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
            # Messages of other code, such as warnings, appear above the bars.
            self._proxy = FileProxy(self._console, sys.stderr)
            sys.stderr = self._proxy
        self._live.update(bars(tasks, self._console.width), refresh=True)

    def erase(self) -> None:
        live, proxy = self._live, self._proxy
        self._live = self._proxy = None
        if proxy is not None and sys.stderr is proxy:
            sys.stderr = _file_of(proxy)
        if live is not None:
            live.stop()
            self._console.show_cursor()


def _file_of(proxy: FileProxy) -> TextIO:
    file: Any = proxy.rich_proxied_file
    assert file is not None, "it was passed to the proxy"
    return file  # type: ignore[no-any-return]  # declared as bytes or text


def bars(tasks: Sequence[Task], columns: int) -> Table:
    """Return a line with a bar for each task, in a terminal with so many columns."""
    shown = tasks[:_MOST_TASKS]
    numbers = [(_count(task), _clock(task.seconds), _left(task)) for task in shown]
    widths = [max(map(len, texts)) for texts in zip(*numbers, strict=True)]
    most = max(_FEWEST_COLUMNS, columns - _BAR_COLUMNS - sum(widths) - len(widths) - 2)
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(width=_BAR_COLUMNS)
    for width in widths:
        grid.add_column(width=width, no_wrap=True, justify="right")
    for task, texts in zip(shown, numbers, strict=True):
        title = Text(title_of(task))
        title.truncate(most, overflow="ellipsis")
        pulses = task.total is None
        bar = ProgressBar(task.total, task.completed, width=_BAR_COLUMNS, pulse=pulses)
        grid.add_row(title, bar, *map(Text, texts))
    if len(tasks) > _MOST_TASKS:
        grid.add_row(Text(f"and {len(tasks) - _MOST_TASKS} more"))
    return grid


class NotebookBars(Display):
    """Bars in the output of a notebook's cell."""

    interval = 0.5

    def __init__(self) -> None:
        super().__init__()
        self._handle: Any = None
        self._cell: object = None

    def draw(self, tasks: Sequence[Task]) -> None:
        self._update({"text/plain": lines(tasks), "text/html": html_bars(tasks)})

    def erase(self) -> None:
        self._update({"text/plain": "", "text/html": ""})

    def _update(self, data: dict[str, str]) -> None:
        """Show data in the one output that each cell has for bars."""
        from IPython import get_ipython
        from IPython.display import display

        cell = getattr(get_ipython(), "execution_count", None)
        if self._handle is not None and self._cell == cell:
            self._handle.update(data, raw=True)
        else:
            self._handle, self._cell = display(data, raw=True, display_id=True), cell


def lines(tasks: Sequence[Task]) -> str:
    """Return tasks as plain text."""
    return "\n".join(f"{title_of(task)} {_count(task)} {_clock(task.seconds)}" for task in tasks)


def html_bars(tasks: Sequence[Task]) -> str:
    """Return tasks as a small HTML table."""
    rows = []
    for task in tasks[:_MOST_TASKS]:
        value = "" if task.total is None else f' value="{task.completed}" max="{task.total}"'
        cells = [
            escape(title_of(task)), f"<progress{value}></progress>", _count(task),
            _clock(task.seconds), _left(task),
        ]  # fmt: skip
        rows.append("".join(f'<td style="text-align:left">{cell}</td>' for cell in cells))
    more = len(tasks) - _MOST_TASKS
    if more > 0:
        rows.append(f"<td>and {more} more</td>")
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


class LogLines(Display):
    """A line about each task that takes long, when it does, and from time to time after that."""

    delay = 2.0
    interval = 1.0
    seconds_between_lines = 30.0

    def __init__(self) -> None:
        super().__init__()
        self._next: dict[Task, float] = {}

    def draw(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            seconds = task.seconds
            if seconds >= self._next.get(task, 0.0):
                self._next[task] = seconds + self.seconds_between_lines
                duration = f" ({seconds:.0f} s)" if seconds > self.seconds_between_lines else ""
                count = f" {_count(task)}" if task.total else ""
                print(f"{title_of(task)}{count} …{duration}", file=sys.stderr, flush=True)

    def erase(self) -> None:
        self._next.clear()


def choose_display() -> Display:
    """Return the display for the notebook, terminal or file that the process writes to."""
    if is_in_notebook():
        return NotebookBars()
    console = Console(stderr=True, markup=False, emoji=False)
    return TerminalBars(console) if console.is_terminal else LogLines()


def title_of(task: Task) -> str:
    """Return the name and current step of a task in printable characters."""
    return legible(f"{task.name}: {task.detail}" if task.detail else task.name)


def _count(task: Task) -> str:
    return "" if task.total is None else f"{task.completed:,}/{task.total:,}"


def _left(task: Task) -> str:
    """Return the estimated time that a task still takes."""
    if not task.total or not 0 < task.completed < task.total:
        return ""
    return f"{_clock(task.seconds / task.completed * (task.total - task.completed))} left"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
