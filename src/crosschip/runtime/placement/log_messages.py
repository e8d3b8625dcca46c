"""Log messages about a placement."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.runtime.placement.placement import Placement

SLOWEST = "reference"
"""The reference device, which is slower than any engine."""

LogMessage = tuple[int, str]
"""The level and the text of a message."""

logger = logging.getLogger("crosschip")


def messages(placement: Placement) -> list[LogMessage]:
    """Return the log messages about a placement; warnings if there are fallbacks."""
    fallbacks = placement.fallbacks
    level = logging.WARNING if fallbacks else logging.INFO
    name = placement.model.name
    choice = placement.choice
    summary = placement.summary() if choice is None else f"{placement.summary()}; {choice.summary}"
    lines = [(level, f"{name}: {summary}")]
    if choice is not None and choice.problem:
        lines.append((logging.WARNING, f"{name}: no device was measured: {choice.problem}"))
    slow = [decision for decision in fallbacks if decision.device == SLOWEST]
    if slow:
        reasons = "; ".join(support.reason for support in slow[0].refusals)
        lines.append(
            (
                logging.WARNING,
                f"{name}: {len(slow)} operations run on `reference`, which is slow, the first of "
                f"them {slow[0].name} ({reasons})",
            )
        )
    return lines


def log(lines: Iterable[LogMessage]) -> None:
    """Log messages."""
    for level, text in lines:
        say = logger.warning if level == logging.WARNING else logger.info
        say("%s", text)
