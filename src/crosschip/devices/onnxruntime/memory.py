"""Return of free memory to the system."""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Return free memory to the system.

    The GNU C library keeps freed memory. ONNX Runtime copies all weights more than once to compile
    a
    model, so that more than their size would stay allocated. Other C libraries are not called.
    Source: https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
