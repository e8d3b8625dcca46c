"""The device passes a twelfth of the kit's quick cases, and in the nightly lane all of them."""

from __future__ import annotations

from itertools import islice

import pytest
from tests.devices.xla.conftest import CHIP
from tests.lanes import share

from crosschip.conformance import Verdict, all_cases, run_cases

PARTS = 4
"""The number of tests among which the cases are divided, so that several processes have some."""


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_fails(part: int, pytestconfig: pytest.Config) -> None:
    cases = islice(share(all_cases(quick=True), pytestconfig), part, None, PARTS)
    report = run_cases(f"xla:{CHIP}", list(cases))
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    excluded = {entry.detail for entry in report.entries if entry.verdict is Verdict.EXCLUDED}
    assert excluded <= {"XLA takes denormal numbers for 0"}
