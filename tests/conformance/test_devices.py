"""The devices in the box pass the kit: nothing fails, and what is excluded is few and explained."""

from __future__ import annotations

import pytest
from tests.lanes import share
from tests.modelling import ROOT

from crosschip.conformance import Verdict, all_cases, run_cases
from crosschip.conformance.cases import DEVICE, Case

MOST_EXCLUSIONS = 20


@pytest.fixture(scope="module")
def cases(pytestconfig: pytest.Config) -> list[Case]:
    """The quick cases that are no rows of settings, and a part of all others."""
    quick = [case for case in all_cases(quick=True) if "," not in case.id]
    seen = {case.id for case in quick}
    return quick + share((case for case in all_cases() if case.id not in seen), pytestconfig)


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_nothing_fails(device: str, cases: list[Case]) -> None:
    report = run_cases(device, cases)
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    assert report.counts["excluded"] <= MOST_EXCLUSIONS
    if device == "reference":
        declined = {e.operator for e in report.entries if e.verdict is not Verdict.PASS}
        assert declined <= {DEVICE}, "it has neither submissions nor sessions of its own"


def test_the_example_device_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "examples" / "toy-npu"))
    report = run_cases("toy_npu:ToyNpu", all_cases(quick=True))
    assert not report.failed
    assert report.by_operator().keys() >= {"LEAKY_RELU"}
