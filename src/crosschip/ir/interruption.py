"""Telling what foreign code raises from what interrupts it.

Python calls the handlers of signals between two instructions of whatever code is running, and other
threads may have an exception raised there. What comes of it, a time limit for example, is for
whoever set it, and no failure of the code that happened to run.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import FrameType, TracebackType

_WITHOUT_ERRORS = ("RESUME", "JUMP_BACKWARD")
"""Instructions that raise nothing themselves: what is raised there comes from elsewhere."""

_CALLS = ("CALL", "CALL_FUNCTION_EX", "CALL_KW")
"""Instructions after which exceptions set by other threads are raised, too."""

_LAST_SIGNAL = 64
"""The largest number of a signal. To import `signal` would take SIGINT from a C program."""

_DEFINED_IN_PYTHON = 1 << 9
"""The flag of a class that a `class` statement makes: `Py_TPFLAGS_HEAPTYPE`."""


def raise_interruption(error: BaseException) -> None:
    """Raise what has interrupted the code that raised an error; do nothing if nothing has.

    Args:
        error: the error, as it was caught: its causes and contexts are looked at, too.
    """
    for each in _chain(error):
        if isinstance(each, KeyboardInterrupt) or _is_interruption(each):
            raise each


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, then each that it was raised from or while handling."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            left += (each.__context__, each.__cause__)


def _is_interruption(error: BaseException) -> bool:
    """Tell whether an error was raised by a signal handler, or set by another thread."""
    traceback = error.__traceback__
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        caller, traceback = traceback.tb_frame, traceback.tb_next
        if _handles_signal(traceback.tb_frame, caller):
            return True
    return _is_set_elsewhere(error, traceback)


def _handles_signal(frame: FrameType, interrupted: FrameType) -> bool:
    """Tell whether a function was called as the handler of a signal.

    Its arguments are the signal's number and the frame that was interrupted, which is its caller.
    """
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
    values: list[object] = []
    for name in code.co_varnames[:count]:
        value = frame.f_locals.get(name)
        values += value if isinstance(value, tuple) else (value,)
    return any(
        second is interrupted and isinstance(first, int) and 0 < first <= _LAST_SIGNAL
        for first, second in pairwise(values)
    )


def _is_set_elsewhere(error: BaseException, innermost: TracebackType) -> bool:
    """Tell whether another thread has set an error, by `PyThreadState_SetAsyncExc`.

    It comes at an instruction that does not raise it. A call may be to a function in C, which
    raises errors of its own: those are seldom of a class that is defined in Python and without
    arguments, as errors that are set mostly are.
    """
    # Only for errors: it takes long to import.
    import opcode

    code = innermost.tb_frame.f_code.co_code
    name = opcode.opname[code[innermost.tb_lasti]] if innermost.tb_lasti >= 0 else ""
    if name in _WITHOUT_ERRORS:
        return True
    of_python = bool(type(error).__flags__ & _DEFINED_IN_PYTHON)
    return name in _CALLS and of_python and not error.args
