"""The device passes the conformance kit's quick cases, or what `CROSSCHIP_XLA_CASES` asks for."""

from __future__ import annotations

import os
from itertools import islice

import pytest
from tests.devices.xla.conftest import CHIP

from crosschip.conformance import all_cases, run_cases

PARTS = 8
"""The number of tests among which the cases are divided, so that several processes have some."""


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_fails(part: int) -> None:
    whole = os.environ.get("CROSSCHIP_XLA_CASES") == "all"
    cases = islice(all_cases(quick=not whole), part, None, PARTS)
    report = run_cases(f"xla:{CHIP}", list(cases))
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    assert report.counts["excluded"] == 0
