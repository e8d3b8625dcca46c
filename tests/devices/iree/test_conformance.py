"""The device passes a part of the kit's quick cases, and all of them in the nightly lane."""

from __future__ import annotations

import pytest
from tests.lanes import quick_kit, share

from crosschip.conformance import run_cases

PART = 150
"""One of how many cases runs, besides the nightly lane."""


@pytest.mark.parametrize("name", ["iree", "iree:vmvx"])
@pytest.mark.usefixtures("device")
def test_nothing_fails(name: str, pytestconfig: pytest.Config) -> None:
    cases = share(quick_kit(), pytestconfig, PART * (4 if ":" in name else 1))
    report = run_cases(name, cases, together=24)
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
