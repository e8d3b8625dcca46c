"""Progress of long work: the library reports tasks, and observers show them.

Example:
    from crosschip.progress import task

    with task("resizing pictures", total=len(paths)) as resizing:
        for path in paths:
            resizing.describe(path.name)
            resize(path)
            resizing.advance()

Loading, compiling, measuring, tuning, benchmarking, conformance runs and bisection report tasks,
from any thread. In a notebook, bars appear for what takes longer than a second; `show` has them
appear in a terminal too, and `hide` ends them. A program that shows progress in its own way passes
an `Observer` to `observe`. Without observers a task costs a microsecond.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import TracebackType
from typing import Self

__all__ = ["Observer", "Task", "hide", "observe", "show", "task"]


class Task:
    """A running task; `task` returns it, and a `with` statement runs it.

    Attributes:
        name: the work, as in `compiling resnet50 for openvino`.
        total: the number of steps; `None` if it is not known.
        measures: whether the task measures times, so that displays rest between its changes.
        completed: the number of completed steps.
        detail: the current step; empty if there is nothing to say.
        start: the value of `time.monotonic` at the start.
    """

    __slots__ = (
        "_lock",
        "_observers",
        "_process",
        "completed",
        "detail",
        "measures",
        "name",
        "start",
        "total",
    )

    def __init__(self, name: str, total: int | None, *, measures: bool) -> None:
        self.name = name
        self.total = total
        self.measures = measures
        self.completed = 0
        self.detail = ""
        self.start = monotonic()
        self._lock = threading.Lock()
        self._observers: tuple[Observer, ...] = ()
        self._process = _process

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return monotonic() - self.start

    def advance(self, steps: int = 1) -> None:
        """Count completed steps; several threads may do so at once."""
        with self._lock:
            self.completed += steps
        self._notify("on_change")

    def describe(self, detail: str) -> None:
        """Say what the current step is."""
        self.detail = detail
        self._notify("on_change")

    def __enter__(self) -> Self:
        self._observers = _current_observers()
        try:
            self._notify("on_start")
        except BaseException:
            self._notify("on_end")
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._notify("on_end")
        except BaseException:  # an interruption: no display shows the task for ever
            self._notify("on_end")
            raise

    def _notify(self, method: str) -> None:
        """Call a method of all observers; a failure of one does not disturb the work."""
        if self._process is not _process:
            return
        for observer in self._observers:
            try:
                getattr(observer, method)(self)
            except Exception as error:
                # Imported late: tasks without a failing observer are started before much else is.
                import logging

                from crosschip.ir.interruption import raise_interruption

                raise_interruption(error)
                logging.getLogger("crosschip").exception("an observer of progress failed")


class Observer:
    """Interface of observers, whose methods are called in the threads that do the work.

    They must return soon. `on_end` may be called twice for a task.
    """

    def on_start(self, task: Task) -> None:
        """Take notice of a task that starts."""

    def on_change(self, task: Task) -> None:
        """Take notice of a task's step or number of steps."""

    def on_end(self, task: Task) -> None:
        """Take notice of a task that has ended or failed."""

    def close(self) -> None:
        """Show nothing any more."""


_process = object()
"""Another object in each process: observers of the parent process do not work in a forked one."""

_lock = threading.Lock()
_observers: tuple[Observer, ...] = ()

_display: Observer | None = None
_is_shown: bool | None = None
"""Whether a display shows tasks; `None` to show them in notebooks only."""


def task(name: str, total: int | None = None, *, measures: bool = False) -> Task:
    """Return a task, which runs while it is entered by a `with` statement.

    Args:
        name: the work, as in `compiling resnet50 for openvino`.
        total: the number of steps; `None` if it is not known.
        measures: whether the task measures times, so that displays rest between its changes.
    """
    return Task(name, total, measures=measures)


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Have an observer take notice of the tasks that start meanwhile, in all threads."""
    global _observers
    with _lock:
        _observers += (observer,)
    try:
        yield
    finally:
        with _lock:
            _observers = tuple(other for other in _observers if other is not observer)


def show() -> None:
    """Show tasks from now on, as is done in notebooks without being asked.

    What takes longer than a second has a bar in the notebook or terminal. If standard error is
    another file, such as a log, a line says from time to time what takes long.
    """
    global _is_shown
    _is_shown = True


def hide() -> None:
    """Show no tasks from now on."""
    global _display, _is_shown
    with _lock:
        display, _display, _is_shown = _display, None, False
    if display is not None:
        display.close()


def _current_observers() -> tuple[Observer, ...]:
    global _is_shown
    if _is_shown is None:
        _is_shown = is_in_notebook()
    return (*_observers, _shown_display()) if _is_shown else _observers


def is_in_notebook() -> bool:
    """Return whether a notebook's kernel runs this process."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _shown_display() -> Observer:
    """Return the display, which is created for the first task."""
    global _display
    with _lock:
        if _display is None:
            # Imported late: few programs show progress, and the import is slow.
            from crosschip.progress.display import choose_display

            _display = choose_display()
        return _display


def _forget_observers() -> None:
    """Observe nothing in a forked process, which has no threads of the parent's displays."""
    global _process, _lock, _observers, _display
    _process, _lock, _observers, _display = object(), threading.Lock(), (), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_observers)
