"""Detection of interruptions among caught errors.

A signal handler runs between two instructions of the running code, and another thread can set an
exception there. Such an exception (a time limit, for example) is meant for the caller that set it
up, and does not mean that the interrupted code failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import FrameType, TracebackType

_WITHOUT_ERRORS = ("RESUME", "JUMP_BACKWARD")
"""Instructions that never raise: an exception at one comes from a handler or another thread."""

_CALLS = ("CALL", "CALL_FUNCTION_EX", "CALL_KW")
"""Instructions at which Python also raises exceptions that other threads set."""

_LAST_SIGNAL = 64
"""The largest signal number. Importing `signal` would replace a C program's SIGINT handler."""

_DEFINED_IN_PYTHON = 1 << 9
"""The type flag `Py_TPFLAGS_HEAPTYPE` of classes that a `class` statement defines."""


def raise_interruption(error: BaseException) -> None:
    """Raise the interruption that an error stems from, if there is one.

    Args:
        error: the caught error; its causes and contexts are searched, too.
    """
    for each in _chain(error):
        if isinstance(each, KeyboardInterrupt) or _is_interruption(each):
            raise each


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes and its contexts, recursively."""
    visited: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if current is not None and id(current) not in visited:
            visited.add(id(current))
            yield current
            pending += (current.__context__, current.__cause__)


def _is_interruption(error: BaseException) -> bool:
    """Return whether a signal handler raised the error, or another thread set it."""
    traceback = error.__traceback__
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        caller, traceback = traceback.tb_frame, traceback.tb_next
        if _handles_signal(traceback.tb_frame, caller):
            return True
    return _is_set_elsewhere(error, traceback)


def _handles_signal(frame: FrameType, interrupted: FrameType) -> bool:
    """Return whether a function was called as a signal handler.

    Then its arguments are a signal number and the interrupted frame, which is its caller.
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
    """Return whether another thread has set the error with `PyThreadState_SetAsyncExc`.

    Then it appears at an instruction that cannot raise it. A call instruction may have called a C
    function, whose own errors rarely are of a class defined in Python and without arguments,
    whereas errors set by threads mostly are.
    """
    # Slow to import, and needed only for errors.
    import opcode

    code = innermost.tb_frame.f_code.co_code
    name = opcode.opname[code[innermost.tb_lasti]] if innermost.tb_lasti >= 0 else ""
    if name in _WITHOUT_ERRORS:
        return True
    of_python = bool(type(error).__flags__ & _DEFINED_IN_PYTHON)
    return name in _CALLS and of_python and not error.args
