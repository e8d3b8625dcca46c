"""Loggers of Python's `logging`, which is imported once there is something to be heard.

Importing it takes longer than most of what a process does that finds a compiled model. As long as
nobody has imported it, nobody listens to what is less than a warning.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger

INFO, WARNING = 20, 30
"""The levels of messages that are kept, as `logging` numbers them."""

_UNHEARD = frozenset({"debug", "info"})


def logger(name: str) -> Logger:
    """The logger of a name."""
    return cast("Logger", _LazyLogger(name))


class _LazyLogger:
    """Stands for a logger, and has its methods."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., object]:
        if method in _UNHEARD and "logging" not in sys.modules:
            return _unheard
        from logging import getLogger

        log: Callable[..., object] = getattr(getLogger(self._name), method)
        return log


def _unheard(*_: object, **__: object) -> None:
    pass
