"""That the kit finds what OpenVINO does wrong by itself: each rule of ours, taken away, shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.conformance.unguarded import RULES, Rule
from tests.limits import lacks_avx512

from crosschip.conformance import Case, case_of, run_cases
from crosschip.conformance.cases import DEVICE
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge
from crosschip.devices.openvino import OpenVinoDevice

pytestmark = pytest.mark.skipif(
    lacks_avx512(), reason="with fewer instruction sets OpenVINO gets other things wrong"
)

APART = {name: rule for name, rule in RULES.items() if rule.ends_the_process}
HERE = {name: rule for name, rule in RULES.items() if not rule.ends_the_process}


@pytest.fixture(scope="module")
def device() -> Iterator[OpenVinoDevice]:
    with OpenVinoDevice() as opened:
        yield opened


@pytest.mark.parametrize("name", HERE)
def test_what_is_wrong_without_a_rule(
    device: OpenVinoDevice, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rule = HERE[name]
    assert _verdicts(device, rule) == {Verdict.PASS}
    rule.remove(monkeypatch)
    assert _verdicts(device, rule) == {Verdict.FAIL}


def _verdicts(device: OpenVinoDevice, rule: Rule) -> set[Verdict]:
    return {judge(_case(id), device, Claims()).verdict for id in rule.cases}


def _case(id: str) -> Case:
    operator, _, _ = id.partition("/")
    return Case(id, DEVICE) if operator == DEVICE else case_of(id)


def test_what_may_end_the_process_without_a_rule() -> None:
    cases = [_case(id) for rule in APART.values() for id in rule.cases]
    report = run_cases("tests.conformance.unguarded:Unguarded", cases, timeout=20)
    assert {entry.id for entry in report.failed} == {case.id for case in cases}


def test_what_is_right_with_them(device: OpenVinoDevice) -> None:
    seen = {id for rule in HERE.values() for id in rule.cases}
    for rule in APART.values():
        others = replace(rule, cases=tuple(id for id in rule.cases if id not in seen))
        assert _verdicts(device, others) <= {Verdict.PASS}
