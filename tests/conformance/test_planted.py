"""That the kit finds faults that only show where conditions meet, and engines that never check."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from tests.conformance.planted import FAULTS, UNCHECKED, Fault, device

from crosschip.conformance import all_cases, case_of, random_cases
from crosschip.conformance.cases import Case
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge
from crosschip.ops import operator_named

RANDOM = 2000
"""The number of random cases of its operator in which a fault must be found."""


def first_failure(fault: Fault, cases: Iterable[Case]) -> str:
    """The id of the first case that fails; empty if none does."""
    faulty = device(fault)
    for case in cases:
        whole = case if case.variation or case.operator == "DEVICE" else case_of(case.id)
        if judge(whole, faulty, Claims()).verdict is Verdict.FAIL:
            return case.id
    return ""


@pytest.mark.parametrize("name", FAULTS)
def test_a_random_run_finds_what_needs_two_conditions(name: str) -> None:
    assert first_failure(FAULTS[name], random_cases(RANDOM, 0, FAULTS[name].operator))


@pytest.mark.parametrize(
    "name",
    [
        *("gather_never_checks", "assert_never_checks", "relu_of_nan", "reduce_max_of_nan"),
        *("other_sizes", "the_previous_output"),
    ],
)
def test_the_ordinary_run_finds_what_a_careless_device_does(name: str) -> None:
    fault = UNCHECKED[name]
    assert first_failure(fault, (case for case in all_cases(fault.operator) if not case.invalid))


def test_a_rule_that_need_not_be_enforced_may_be_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = UNCHECKED["assert_never_checks"]
    case = case_of("ASSERT/0/condition-not")
    assert judge(case, device(fault), Claims()).verdict is Verdict.FAIL
    monkeypatch.setattr(operator_named("ASSERT"), "unenforced", frozenset({"condition"}))
    assert judge(case, device(fault), Claims()).verdict is Verdict.PASS


@pytest.mark.parametrize("name", UNCHECKED)
def test_a_random_run_finds_what_engines_do_not_check(name: str) -> None:
    assert first_failure(UNCHECKED[name], random_cases(RANDOM, 0, UNCHECKED[name].operator))
