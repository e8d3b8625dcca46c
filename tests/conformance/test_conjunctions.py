"""That the quick kit finds faults in which conditions meet, and faults in how programs run."""

from __future__ import annotations

import pytest
from tests.conformance.calls import CALLS
from tests.conformance.conjunctions import CONJUNCTIONS
from tests.conformance.planted import device

from crosschip.conformance import all_cases
from crosschip.conformance.cases import DEVICE
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge


@pytest.mark.parametrize("name", CONJUNCTIONS)
def test_the_quick_kit_finds_what_needs_several_conditions(name: str) -> None:
    fault = CONJUNCTIONS[name]
    faulty = device(fault)
    cases = (case for case in all_cases(fault.operator, quick=True) if not case.invalid)
    assert any(judge(case, faulty, Claims()).verdict is Verdict.FAIL for case in cases)


@pytest.mark.parametrize("name", CALLS)
def test_the_quick_kit_finds_what_some_calls_do_wrong(name: str) -> None:
    call = CALLS[name]
    faulty = call.device()
    cases = [case for op in ("ADD", DEVICE) for case in all_cases(op, quick=True)]
    results = (judge(case, faulty, Claims()) for case in cases if not case.invalid)
    failure = next((r.detail for r in results if r.verdict is Verdict.FAIL), "")
    assert call.message in failure
    assert failure
