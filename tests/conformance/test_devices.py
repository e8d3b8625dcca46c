"""The devices in the box pass the kit: nothing fails, and what is excluded is few and explained."""

from __future__ import annotations

import os
import zlib

import pytest
from tests.modelling import ROOT

from crosschip.conformance import all_cases, run_cases
from crosschip.conformance.cases import Case

MOST_EXCLUSIONS = 20
WHOLE = "CROSSCHIP_KIT"
"""The variable of the environment that has engines run all cases, where it says `whole`."""


def cases(device: str) -> list[Case]:
    """All cases for the reference; for an engine the quick ones, and a third of the others."""
    every = list(all_cases())
    if device == "reference" or os.environ.get(WHOLE) == "whole":
        return every
    quick = {case.id for case in all_cases(quick=True)}
    return [c for c in every if c.id in quick or zlib.crc32(c.id.encode()) % 3 == 0]


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_nothing_fails(device: str) -> None:
    report = run_cases(device, cases(device))
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
