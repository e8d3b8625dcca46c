"""Drivers give the verdicts of the same device in-process, case by case.

`crosschip conformance openvino@driver --quick --json` runs all of the quick set.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from crosschip.conformance import all_cases, run_cases

EVERY = 40
"""One of so many cases is run here."""


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_a_driver_is_judged_as_its_device(runtime: Path, device: str) -> None:
    cases = list(all_cases(quick=True))
    own = [case for case in cases if case.id.startswith("DEVICE/device/")]
    cases = [*cases[::EVERY], *own]
    here, there = (run_cases(name, cases) for name in (device, f"{device}@driver"))
    expected = {entry.id: (entry.verdict, entry.detail) for entry in here.entries}
    found = {entry.id: (entry.verdict, entry.detail) for entry in there.entries}
    assert not there.failed
    assert found == expected
