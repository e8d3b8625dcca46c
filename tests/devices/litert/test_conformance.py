"""The device passes a part of the kit's quick cases, and all of them in the nightly lane."""

from __future__ import annotations

from itertools import islice

import pytest
from tests.lanes import NIGHTLY, quick_kit, share

from crosschip.conformance import Verdict, run_cases

PART = 24
"""One of how many cases runs, besides the nightly lane."""

PARTS = 4
"""The number of tests among which the cases are divided, so that several processes have some."""


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_fails(part: int, pytestconfig: pytest.Config) -> None:
    cases = share(quick_kit(), pytestconfig, PART)
    if not pytestconfig.getoption(NIGHTLY):
        # Of rows of settings, which take longest, one in four.
        cases = [case for n, case in enumerate(cases) if n % 4 == 0 or "," not in case.id]
    report = run_cases("litert", list(islice(cases, part, None, PARTS)))
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    excluded = {entry.detail for entry in report.entries if entry.verdict is Verdict.EXCLUDED}
    assert excluded <= {"LiteRT takes denormal numbers for 0"}
