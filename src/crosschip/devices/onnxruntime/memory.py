"""Giving memory back to the system."""

from __future__ import annotations

import ctypes
import sys


def trim_heap() -> None:
    """Give free memory back to the system.

    The GNU C library keeps what is freed for later. ONNX Runtime copies all weights more than once
    to compile a model, and what is kept of that would come to more than the weights. Other C
    libraries are left alone.
    Source: https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)
