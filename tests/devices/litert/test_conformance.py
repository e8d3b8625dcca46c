"""The device passes quick cases of some operators, and the whole quick kit in the nightly lane."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import pytest
from tests.lanes import quick_kit

from crosschip.conformance import Verdict, run_cases
from crosschip.conformance.cases import Case, all_cases
from crosschip.devices.litert.target import TARGET
from crosschip.ops import operators

PARTS = 8
"""The number of nightly tests among which the cases are divided."""

_SHARE = 9
"""One of how many operators is tested besides the nightly lane."""


def _check(cases: Iterable[Case]) -> None:
    report = run_cases("litert", list(cases))
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    excluded = {entry.detail for entry in report.entries if entry.verdict is Verdict.EXCLUDED}
    assert excluded <= {"LiteRT takes denormal numbers for 0"}


@pytest.mark.slow
def test_nothing_fails_of_some_operators() -> None:
    """Without rows of settings, which take longest."""
    some = sorted(operators().keys() & set(TARGET.operators))[::_SHARE]
    _check(case for case in all_cases(some, quick=True) if "," not in case.id)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_fails(part: int) -> None:
    _check(islice(quick_kit(), part, None, PARTS))
