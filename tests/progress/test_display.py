"""What a person sees of tasks: bars in a terminal, lines in a log, nothing of what is fast."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from crosschip.progress import Task, task
from crosschip.progress.display import Display, LogLines, bars, html_bars, lines

pty = pytest.importorskip("pty", reason="terminals are those of Unix")

WORK = """
import sys, time, threading
from crosschip import progress

progress.show()
for seconds in {seconds}:
    with progress.task("first [b] \\x1b[31m", total=4) as first:
        first.advance(2)
        with progress.task("second"):
            time.sleep(seconds)
        print("a warning", file=sys.stderr)
        time.sleep(seconds / 4)
    print("result", flush=True)
assert sys.stderr is sys.__stderr__
assert threading.active_count() == 1, threading.enumerate()
"""


INTERRUPTED = """
import os, signal, sys, threading, time
from crosschip import cli
from crosschip.progress import task

def run(arguments):
    threading.Timer(1.6, os.kill, (os.getpid(), signal.SIGINT)).start()
    with task("endless [b]", total=3):
        time.sleep(60)

cli.run = run
cli.main()
"""


def terminal(tmp_path: Path, script: str, status: int = 0) -> str:
    """What a script writes to a terminal, whose standard output is the same."""
    file = tmp_path / "script.py"
    file.write_text(script)
    pieces: list[bytes] = []

    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(file)], stdin=child, stdout=child, stderr=child, env=environment
    )
    os.close(child)
    with open(parent, "rb", buffering=0) as output:
        while True:
            try:
                piece = output.read(4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
    assert process.wait() == status, b"".join(pieces).decode()
    return b"".join(pieces).decode()


def screen(text: str) -> list[str]:
    """The lines that a terminal shows at the end, by the few sequences that are used."""
    rows, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[?0-9;]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", text):
        if token == "\r":
            column = 0
        elif token == "\n":
            row += 1
            rows += [""] * (row + 1 - len(rows))
        elif token.endswith("A"):
            row -= int(token[2:-1] or 1)
        elif token.endswith("K"):
            rows[row] = ""
        elif not token.startswith("\x1b"):
            rows[row] = rows[row][:column].ljust(column) + token + rows[row][column + len(token) :]
            column += len(token)
    return [line.rstrip() for line in rows]


def test_a_terminal_shows_bars_and_at_the_end_only_results(tmp_path: Path) -> None:
    written = terminal(tmp_path, WORK.format(seconds=[1.5]))
    assert "first [b] \\x1b[31m" in written
    assert "second" in written
    assert "2/4" in written
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l"), "the cursor is shown again"
    assert [line for line in screen(written) if line] == ["a warning", "result"]


def test_an_interruption_clears_the_terminal(tmp_path: Path) -> None:
    written = terminal(tmp_path, INTERRUPTED, status=130)
    assert "endless [b]" in written
    assert "Traceback" not in written
    assert not "".join(screen(written)).replace("^C", "")
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l"), "the cursor is shown again"


def test_a_terminal_shows_nothing_of_what_is_fast(tmp_path: Path) -> None:
    written = terminal(tmp_path, WORK.format(seconds=[0.01] * 20))
    assert written == "a warning\r\nresult\r\n" * 20


def test_bars_fit_the_terminal() -> None:
    slow = Task("a model of a name that is longer than most: " * 6, 1000, measures=False)
    slow.completed, slow.start = 250, slow.start - 100
    for columns in (80, 120, 200):
        console = Console(width=columns, force_terminal=True, color_system=None)
        with console.capture() as shown:
            console.print(bars([slow, Task("other", None, measures=False)], columns))
        first, second = shown.get().splitlines()
        assert len(first) <= columns
        assert "… ━" in first
        assert first.endswith("250/1,000 0:01:40 0:05:00 left")
        assert second.startswith("other")


def test_many_tasks_at_once_are_counted() -> None:
    many = [Task(f"part {index}", None, measures=False) for index in range(20)]
    console = Console(width=80)
    with console.capture() as shown:
        console.print(bars(many, 80))
    assert shown.get().splitlines()[-1].strip() == "and 12 more"
    assert "and 12 more" in html_bars(many)


def test_html_is_escaped() -> None:
    hostile = Task("<script>alert(1)</script>\x07", 3, measures=False)
    html = html_bars([hostile])
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\x07" in html
    assert 'value="0" max="3"' in html
    assert "\x07" not in lines([hostile])


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_log_says_what_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, log = Clock(), LogLines()
    monkeypatch.setattr("crosschip.progress.monotonic", clock)
    compiling = Task("compiling [b]", None, measures=False)
    for clock.now in (2.0, 20.0, 32.0, 40.0, 62.0):
        log.draw([compiling])
    assert capsys.readouterr().err == (
        "compiling [b] …\ncompiling [b] … (32 s)\ncompiling [b] … (62 s)\n"
    )


class Drawn(Display):
    """Records which thread draws."""

    delay, interval = 0.05, 0.01

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str] = []

    def draw(self, tasks: object) -> None:
        self.threads.append(threading.current_thread().name)


def test_what_measures_is_drawn_by_the_measuring_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    display = Drawn()
    monkeypatch.setattr("crosschip.progress._display", display)
    monkeypatch.setattr("crosschip.progress._is_shown", True)
    with task("measuring", measures=True) as measuring:
        time.sleep(0.3)
        assert display.threads == ["crosschip progress"], "once, to begin with"
        measuring.advance()
        assert display.threads[1:] == [threading.current_thread().name]
        time.sleep(0.3)
        assert len(display.threads) == 2


def test_the_end_of_a_task_does_not_wait_for_a_thread_that_cannot_end() -> None:
    """An interruption between the acquisition of a lock and its `with` block leaves it held."""
    display, work = LogLines(), Task("work", None, measures=False)

    def interrupted() -> None:
        display.on_start(work)
        display._condition.acquire()
        display.on_end(work)
        display._condition.release()

    thread = threading.Thread(target=interrupted, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
