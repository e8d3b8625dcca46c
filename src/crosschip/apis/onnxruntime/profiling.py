"""Profiles in ONNX Runtime's form: a file of events for chrome://tracing."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Profiler:
    """The events of a session, until `write`.

    Args:
        prefix: the beginning of the file's name.

    Attributes:
        start_ns: when it began, in nanoseconds.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._events: list[dict[str, object]] = []
        self.start_ns = time.perf_counter_ns()

    @contextmanager
    def event(self, name: str, category: str = "Session") -> Iterator[None]:
        """Record the time of the block."""
        begin = time.perf_counter_ns()
        yield
        end = time.perf_counter_ns()
        self._events.append(
            {
                "cat": category,
                "pid": os.getpid(),
                "tid": threading.get_native_id(),
                "dur": (end - begin) // 1000,
                "ts": (begin - self.start_ns) // 1000,
                "ph": "X",
                "name": name,
                "args": {},
            }
        )

    def write(self) -> str:
        """Write the events, one per line, to a file in the current folder; return its name."""
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        name = f"{self._prefix}_{stamp}.json"
        with open(name, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(map(json.dumps, self._events)) + "\n]\n")
        self._events = []
        return name
