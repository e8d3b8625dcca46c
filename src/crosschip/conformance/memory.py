"""The memory that a repeated action takes and does not release."""

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
    """The bytes that each further call of an action takes and does not release.

    Where few calls take more than is allowed, more calls say whether that goes on: an engine may
    release memory later, on another thread.
    """
    grown = _growth(action, _CALLS)
    return _growth(action, _MANY_CALLS) if grown > LARGEST_GROWTH else grown


def _growth(action: Callable[[], object], calls: int) -> int:
    """`growth`, counted over groups of so many calls.

    It is counted after some calls, over three groups of calls: the least of these, so that what is
    made once, or in the growth of a table, does not count. Of the memory of NumPy and Python each
    byte is counted; of what C code allocates, where the C library counts it.
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
    """The bytes that Python has allocated, and those that the C library has handed out."""
    gc.collect(0)
    traced, _ = tracemalloc.get_traced_memory()
    return traced, _heap_bytes()


class _MallocInfo(ctypes.Structure):
    """The structure `mallinfo2` of glibc, whose fields are all of the type `size_t`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    ]


@lru_cache(maxsize=1)
def _mallinfo() -> Callable[[], _MallocInfo] | None:
    """The function of the C library that counts its heap; `None` where it has none."""
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):
        return None
    function.restype = _MallocInfo
    found: Callable[[], _MallocInfo] = function
    return found


def _heap_bytes() -> int:
    function = _mallinfo()
    if function is None:
        return 0
    counts = function()
    return int(counts.uordblks + counts.hblkhd)
