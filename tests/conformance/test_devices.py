"""The devices in the box pass the kit: nothing fails, and what is excluded is few and explained."""

from __future__ import annotations

import pytest
from tests.lanes import NIGHTLY, quick_kit, share
from tests.modelling import ROOT

from crosschip.conformance import Verdict, all_cases, run_cases
from crosschip.conformance.cases import DEVICE, Case

MOST_EXCLUSIONS = 20

PART = 8
"""One of how many cases runs on an engine, besides the nightly lane.

`tests/ops/test_examples.py` runs all examples there, as they are.
"""


@pytest.fixture(scope="module")
def cases(pytestconfig: pytest.Config) -> list[Case]:
    """The quick cases without rows of settings, and a part of those with; nightly, all cases."""
    if pytestconfig.getoption(NIGHTLY):
        return list(all_cases())
    rows = (case for case in quick_kit() if "," in case.id)
    return [*(case for case in quick_kit() if "," not in case.id), *share(rows, pytestconfig)]


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_nothing_fails(device: str, cases: list[Case], pytestconfig: pytest.Config) -> None:
    if device != "reference":
        # Invalid uses say nothing of the device.
        cases = share((case for case in cases if not case.invalid), pytestconfig, PART)
    report = run_cases(device, cases)
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    assert report.counts["excluded"] <= MOST_EXCLUSIONS
    if device == "reference":
        declined = {e.operator for e in report.entries if e.verdict is not Verdict.PASS}
        assert declined <= {DEVICE}, "it has neither submissions nor sessions of its own"


def test_the_example_device_passes(
    monkeypatch: pytest.MonkeyPatch, cases: list[Case], pytestconfig: pytest.Config
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "examples" / "toy-npu"))
    report = run_cases("toy_npu:ToyNpu", share(cases, pytestconfig, PART))
    assert not report.failed
    assert report.by_operator().keys() >= {"LEAKY_RELU"}
