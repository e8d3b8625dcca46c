"""The device passes a part of the kit's quick cases, and all of them in the nightly lane."""

from __future__ import annotations

from itertools import islice

import pytest
from tests.devices.torch.conftest import CHIP
from tests.lanes import NIGHTLY, quick_kit, share

from crosschip.conformance import Verdict, run_cases
from crosschip.conformance.cases import case_of
from crosschip.conformance.claims import claims_of
from crosschip.conformance.judge import judge
from crosschip.hal import Device, Options

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


FORMER_FAILURES = (
    "CLIP/random/0-20",
    "CONV_1D_INTEGER/random/0-37",
    "CONV_2D_INTEGER/random/2-35",
    "CONV_3D_TRANSPOSE/random/0-16",
    "INSTANCE_NORMALIZATION/random/0-6",
    "LRN/random/0-41",
    "MAX_POOL_1D/random/2-71",
    "NON_MAX_SUPPRESSION/random/2-1",
    "UNIQUE/random/2-29",
)
"""Random cases that the device once failed: empty filters, windows and groups, NumPy's types."""


def test_former_failures_pass(device: Device) -> None:
    claims = claims_of(type(device))
    for id in FORMER_FAILURES:
        result = judge(case_of(id), device, claims, int(id.split("/")[2][0]), Options())
        assert result.verdict is Verdict.PASS, f"{id}: {result.detail}"
