"""The conformance kit.

The quick cases, then 1,000 random cases that the device supports.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from benchmarks.subject import Column, Row
from gpu.settings import Settings

from crosschip.conformance import Report, run_cases
from crosschip.conformance.report import reasons
from crosschip.conformance.selection import cases_to_take, chosen_cases

REQUIREMENT = "no case fails, and all are run"
SHARE = 0.45
PER_DEVICE = True

_RANDOM, _LEAST_RANDOM = 1000, 10
_REASONS = 5
_OPERATORS = ("RELU", "MAT_MUL")
"""Operators of a quick trial."""


@dataclass(frozen=True)
class Cases(Row):
    """The verdicts on one sort of cases."""

    device: Annotated[str, Column("device")]
    sort: Annotated[str, Column("cases")]
    passed: Annotated[int, Column("pass")]
    failed: Annotated[int, Column("FAIL")]
    refused: Annotated[int, Column("refused")]
    others: Annotated[int, Column("excluded or not run")]
    whole: Annotated[str, Column("whole")]
    seconds: Annotated[float, Column("s", ".0f")]

    @property
    def met(self) -> bool:
        return not self.failed and self.whole == "yes"


def measure(device: str, settings: Settings) -> Iterator[Row | str]:
    """Run the quick cases for two thirds of the time at most, then the random ones."""
    operators = _OPERATORS if settings.quick else ()
    count = _LEAST_RANDOM if settings.quick else _RANDOM
    run = partial(run_cases, device, jobs=os.cpu_count() or 1)

    def quick() -> Report:
        return run(list(chosen_cases(operators, quick=True)))

    def random() -> Report:
        return run(cases_to_take(count, 0, operators), limit=count)

    yield from _rows("quick", settings.remaining() * 2 / 3, quick)
    yield from _rows("random", settings.remaining(), random)


def _rows(sort: str, seconds: float, run: Callable[[], Report]) -> Iterator[Row | str]:
    """Yield the counts, the failures, and why most of the refused cases are refused."""
    begin = time.monotonic()
    try:
        with _interrupted_after(seconds):
            report = run()
    except KeyboardInterrupt:  # before any case ran; later, the report holds what there is
        yield f"{sort}: no results within {seconds:.0f} s"
        return
    counts = report.counts
    others = counts["excluded"] + counts["not_run"]
    figures = (counts["pass"], counts["fail"], counts["unsupported"], others)
    whole = "yes" if report.whole else "no"
    yield Cases(report.device, sort, *figures, whole, time.monotonic() - begin)
    for entry in report.failed:
        use = entry.smallest or entry.use
        yield f"FAIL `{entry.id}`: {entry.detail}" + (f" (the use: {use})" if use else "")
    for reason, number in list(reasons(report.entries))[:_REASONS]:
        yield f"{sort}, refused {number} times: {reason}"


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Interrupt the main thread after some time, as Ctrl-C does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.1))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
