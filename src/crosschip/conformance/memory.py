"""Memory growth of a repeated action."""

from __future__ import annotations

import ctypes
import gc
import tracemalloc
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

_WARM_UP = 12
_WINDOWS = 3
_CALLS = 12
_MANY_CALLS = 150
LARGEST_GROWTH = 512
"""The bytes a call may take, for counters and the growth of tables that some calls cause."""


def growth(action: Callable[[], object]) -> int:
    """Return the bytes that each further call of an action allocates and does not release.

    If a few calls exceed the allowed growth, more calls are measured: an engine may release memory
    later, on another thread.
    """
    grown = _growth(action, _CALLS)
    return _growth(action, _MANY_CALLS) if grown > LARGEST_GROWTH else grown


def _growth(action: Callable[[], object], calls: int) -> int:
    """Return `growth`, measured over three groups of `calls` calls after some warm-up calls.

    The smallest growth of the groups is returned, so that one-time allocations and growing tables
    do not count. Bytes of NumPy and Python are counted exactly; bytes of C code are counted if the
    C library has `mallinfo2`.
    """
    was_tracing = tracemalloc.is_tracing()
    if not was_tracing:
        tracemalloc.start(1)
    try:
        for _ in range(_WARM_UP):
            action()
        sizes = [_in_use()]
        for _ in range(_WINDOWS):
            for _ in range(calls):
                action()
            sizes.append(_in_use())
    finally:
        if not was_tracing:
            tracemalloc.stop()
    windows = pairwise(sizes)
    grown = [tuple(b - a for a, b in zip(one, other, strict=True)) for one, other in windows]
    least: int = max(min(each) for each in zip(*grown, strict=True))
    return least // calls


def _in_use() -> tuple[int, int]:
    """Return the bytes allocated by Python, and those handed out by the C library."""
    gc.collect(0)
    traced, _ = tracemalloc.get_traced_memory()
    return traced, _heap_bytes()


class _MallocInfo(ctypes.Structure):
    """The structure `mallinfo2` of glibc; all fields are `size_t`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    ]


@lru_cache(maxsize=1)
def _mallinfo() -> Callable[[], _MallocInfo] | None:
    """Return the C library's function that counts its heap; `None` if it has none."""
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    function.restype = _MallocInfo
    typed_function: Callable[[], _MallocInfo] = function
    return typed_function


def _heap_bytes() -> int:
    function = _mallinfo()
    if function is None:
        return 0
    counts = function()
    return int(counts.uordblks + counts.hblkhd)
