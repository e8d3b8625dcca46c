"""The device passes the conformance kit's quick cases, or what `CROSSCHIP_XLA_CASES` asks for."""

from __future__ import annotations

import os

from tests.devices.xla.conftest import CHIP

from crosschip.conformance import all_cases, run_cases


def test_nothing_fails() -> None:
    whole = os.environ.get("CROSSCHIP_XLA_CASES") == "all"
    report = run_cases(f"xla:{CHIP}", all_cases(quick=not whole))
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    assert report.counts["excluded"] == 0
