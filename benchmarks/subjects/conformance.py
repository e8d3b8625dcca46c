"""The results of the built-in devices in the conformance kit.

The full run, with two processes; see docs/conformance.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from benchmarks.engines import available
from benchmarks.subject import Column, Row
from crosschip.conformance import all_cases, run_cases

DOCUMENT = "coverage"
MOST_MINUTES, MOST_EXCLUSIONS = 10, 20
REQUIREMENT = (
    f"nothing fails, at most {MOST_EXCLUSIONS} exclusions, and the reference takes at most "
    f"{MOST_MINUTES} minutes"
)


@dataclass(frozen=True)
class Conformance(Row):
    """One device."""

    device: Annotated[str, Column("device")]
    cases: Annotated[int, Column("cases")]
    passed: Annotated[int, Column("pass")]
    unsupported: Annotated[int, Column("unsupported")]
    failed: Annotated[int, Column("fail")]
    excluded: Annotated[int, Column("excluded")]
    seconds: Annotated[float, Column("seconds", ".0f")]

    @property
    def met(self) -> bool:
        in_time = self.device != "reference" or self.seconds <= 60 * MOST_MINUTES
        return not self.failed and self.excluded <= MOST_EXCLUSIONS and in_time


def measure(*, quick: bool) -> Iterator[Conformance]:
    """Each device."""
    for device in available():
        start = time.perf_counter()
        report = run_cases(device, all_cases(quick=quick), jobs=2)
        seconds = time.perf_counter() - start
        passed, unsupported, failed, excluded, _ = report.counts.values()
        cases = len(report.entries)
        yield Conformance(device, cases, passed, unsupported, failed, excluded, seconds)
