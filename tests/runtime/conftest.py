"""The messages that crosschip logs while it works."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """A function that returns the warnings so far."""

    def messages() -> list[str]:
        return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]

    return messages
