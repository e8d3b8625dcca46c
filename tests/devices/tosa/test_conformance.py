"""The device passes a part of the kit's quick cases, and all of them in the nightly lane."""

from __future__ import annotations

import pytest
from tests.lanes import quick_kit, share

from crosschip.conformance import Verdict, run_cases

PART = 160
"""One of how many cases runs, besides the nightly lane."""


def test_nothing_fails(pytestconfig: pytest.Config) -> None:
    report = run_cases("tosa", share(quick_kit(), pytestconfig, PART))
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    passed = {e.id.partition("/")[0] for e in report.entries if e.verdict is Verdict.PASS}
    assert len(passed) > 20
