"""Drivers give the verdicts of the same device in-process, case by case.

`crosschip conformance openvino@driver --quick --json` runs all of the quick set.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from crosschip.conformance import all_cases, run_cases
from crosschip.conformance.cases import DEVICE

OPERATORS = {"ADD", "NON_ZERO", "CONCAT"}
"""All cases of these are run here."""

AGAIN = {f"DEVICE/device/{name}" for name in ("second-context", "close-and-reopen")}
"""Cases that open a driver once more."""


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_a_driver_is_judged_as_its_device(runtime: Path, device: str) -> None:
    cases = list(all_cases({*OPERATORS, DEVICE}, quick=True))
    again = AGAIN if device == "reference" else set()
    cases = [case for case in cases if case.id.partition("/")[0] in OPERATORS or case.id in again]
    here, there = (run_cases(name, cases) for name in (device, f"{device}@driver"))
    expected = {entry.id: (entry.verdict, entry.detail) for entry in here.entries}
    found = {entry.id: (entry.verdict, entry.detail) for entry in there.entries}
    assert not there.failed
    assert found == expected
