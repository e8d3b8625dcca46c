"""The urgency of the run that a thread is at, for devices that have a queue of their own."""

from __future__ import annotations

from contextvars import ContextVar

urgency: ContextVar[int] = ContextVar("urgency", default=2)
"""NNRt's priority of the run: 0 for no wish, 1 for low, 2 for medium, 3 for high."""
