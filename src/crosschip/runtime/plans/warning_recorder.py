"""Hearing what a compilation warns of."""

from __future__ import annotations

import logging

logger = logging.getLogger("crosschip")


class WarningRecorder(logging.Handler):
    """Hears whether anything is warned of, as long as it is entered."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.warned = False

    def emit(self, record: logging.LogRecord) -> None:
        self.warned = True

    def __enter__(self) -> WarningRecorder:
        logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logger.removeHandler(self)
