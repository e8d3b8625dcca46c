"""Python's garbage collector, and what it costs on large models."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Do not look for garbage: a large model is millions of objects, none of them garbage yet.

    Each look would go through all of them, so that building twice as much takes four times as long.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
