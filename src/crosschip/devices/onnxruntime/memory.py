"""Keeping what ONNX Runtime allocates in passing from adding up."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_SMALL, _LARGEST = 2**20, 2**25


@contextmanager
def frugal() -> Iterator[None]:
    """While the block runs, large blocks of memory go back to the system when they are freed.

    The GNU C library learns to keep them for later. ONNX Runtime copies all weights more than once
    to compile a model, and what is kept of that would come to more than the weights. Afterwards the
    library is set to what it learns at most: to keep blocks of up to 32 MiB. Other C libraries
    are left alone.
    Source: https://man7.org/linux/man-pages/man3/mallopt.3.html
    """
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "malloc_trim"):
        yield
        return
    library.mallopt(_M_MMAP_THRESHOLD, _SMALL)
    library.malloc_trim(0)
    try:
        yield
    finally:
        library.malloc_trim(0)
        library.mallopt(_M_MMAP_THRESHOLD, _LARGEST)
        library.mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST)
