"""That the quick kit finds faults in which conditions meet, and faults in how programs run."""

from __future__ import annotations

import pytest
from tests.conformance.calls import CALLS
from tests.conformance.conjunctions import CONJUNCTIONS
from tests.conformance.planted import device
from tests.lanes import quick_kit

from crosschip.conformance.cases import DEVICE, Case
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge

MISSED = frozenset(
    {
        "unsigned_zero_point",
        "mean_over_all_axes_of_one_row",
        "several_negative_axes_without_keepdim",
        "ties_of_products_away_from_zero",
    }
)
"""Faults that the quick kit does not find yet."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(reason="no quick case meets it", strict=True))
        if name in MISSED
        else name
        for name in CONJUNCTIONS
    ],
)
def test_the_quick_kit_finds_what_needs_several_conditions(name: str) -> None:
    fault = CONJUNCTIONS[name]
    faulty = device(fault)
    cases = (case for case in quick_cases(fault.operator) if not case.invalid)
    results = (judge(case, faulty, Claims()) for case in cases)
    failures = (r.detail for r in results if r.verdict is Verdict.FAIL)
    # Faulty devices keep the outputs of earlier runs, which the kit may also notice.
    assert any(not detail.startswith("memory grows") for detail in failures)


def quick_cases(operator: str) -> list[Case]:
    """Return the quick cases of an operator, or the checks of a device."""
    return [case for case in quick_kit() if case.operator == operator]


@pytest.mark.parametrize("name", CALLS)
def test_the_quick_kit_finds_what_some_calls_do_wrong(name: str) -> None:
    call = CALLS[name]
    faulty = call.device()
    cases = [case for op in ("ADD", DEVICE) for case in quick_cases(op)]
    results = (judge(case, faulty, Claims()) for case in cases if not case.invalid)
    failure = next((r.detail for r in results if r.verdict is Verdict.FAIL), "")
    assert call.message in failure
    assert failure
