"""That the kit finds defects, each under the operator that it is in."""

from __future__ import annotations

import pytest
from tests.conformance.defects import DEFECTS

from crosschip.conformance import all_cases, run_cases


@pytest.mark.parametrize("name", DEFECTS)
def test_the_kit_finds_it(name: str) -> None:
    operator = DEFECTS[name].operator
    cases = all_cases(operator, quick=True)
    if name in ("hang", "crash"):
        cases = (case for case in cases if case.id.endswith(("/plain", "/dynamic")))
    report = run_cases(f"tests.conformance.defects:{name}", cases, timeout=1)
    assert report.failed
    assert {entry.operator for entry in report.failed} == {operator}


@pytest.mark.parametrize("name", ["ties_rounded_away", "dilations_ignored", "crash"])
def test_the_kit_blames_no_other_operator(name: str) -> None:
    report = run_cases(f"tests.conformance.defects:{name}", all_cases("MAX", quick=True))
    assert not report.failed
