"""The device passes a part of the kit's quick cases, and all of them in the nightly lane."""

from __future__ import annotations

from itertools import islice

import pytest
from tests.devices.torch.conftest import CHIP
from tests.lanes import NIGHTLY, quick_kit, share

from crosschip.conformance import run_cases

PART = 48
"""One of how many cases runs, besides the nightly lane."""

PARTS = 4
"""The number of tests among which the cases are divided, so that several processes have some."""


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_fails(part: int, pytestconfig: pytest.Config) -> None:
    cases = share(quick_kit(), pytestconfig, PART)
    device = "crosschip.devices.torch:TorchDevice" if CHIP == "cpu" else f"torch:{CHIP}"
    report = run_cases(device, list(islice(cases, part, None, PARTS)))
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == report.counts["excluded"] == 0
    assert pytestconfig.getoption(NIGHTLY) or report.counts["pass"] > len(cases) // (3 * PARTS)
