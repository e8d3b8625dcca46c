"""The devices in the box pass the kit: nothing fails, and what is excluded is few and explained."""

from __future__ import annotations

import pytest
from tests.modelling import ROOT

from crosschip.conformance import all_cases, run_cases

MOST_EXCLUSIONS = 20


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_nothing_fails(device: str) -> None:
    report = run_cases(device, all_cases())
    assert not [f"{entry.id}: {entry.detail}" for entry in report.failed]
    assert report.counts["not_run"] == 0
    assert report.counts["excluded"] <= MOST_EXCLUSIONS
    if device == "reference":
        assert report.counts["pass"] == len(report.entries)


def test_the_example_device_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "examples" / "toy-npu"))
    report = run_cases("toy_npu:ToyNpu", all_cases(quick=True))
    assert not report.failed
    assert report.by_operator().keys() >= {"LEAKY_RELU"}
