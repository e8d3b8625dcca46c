"""The device passes some of the kit's quick cases, and all of them in the nightly lane."""

from __future__ import annotations

import zlib

import pytest
from tests.lanes import NIGHTLY, share

from crosschip.conformance import Verdict, all_cases, run_cases
from crosschip.devices.kits.tosa.converters.table import quantized_operators
from crosschip.ops import operators

OPERATORS = 12
"""Of how many operators one is tested, besides the nightly lane: generating cases takes long."""

PART = 24
"""Of how many cases of these one runs."""


def test_nothing_fails(pytestconfig: pytest.Config) -> None:
    nightly = pytestconfig.getoption(NIGHTLY)
    chosen = [n for n in operators() if nightly or zlib.crc32(n.encode()) % OPERATORS == 0]
    report = run_cases("tosa", share(all_cases(chosen, quick=True), pytestconfig, PART))
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    passed = {e.id.partition("/")[0] for e in report.entries if e.verdict is Verdict.PASS}
    assert len(passed) >= (150 if nightly else 8)
    assert passed & quantized_operators()
