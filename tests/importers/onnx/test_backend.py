"""The ONNX project's own tests of its operators, on the reference alone and behind ONNX Runtime.

Nothing may be wrong, and all that is refused is listed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.importers.onnx.backend_cases import cases, judge

CHUNKS = 24

RANDOM = {
    "bernoulli": "draws random numbers",
    "training_dropout": "draws random numbers",
}
UNCHECKED: Mapping[str, Mapping[str, str]] = {
    "reference": RANDOM,
    "onnxruntime,reference": RANDOM,
}
"""By devices, the cases whose values are not compared: patterns of their names, and why."""


def unchecked(devices: str) -> set[str]:
    """Return the names of the cases that are refused, or draw random numbers."""
    patterns = [re.compile(f"test_{pattern}") for pattern in UNCHECKED[devices]]
    return {case.name for case in cases() if any(p.match(case.name) for p in patterns)}


def each_once() -> Iterator[Any]:
    """Yield the lists of devices and chunks: each chunk on one list; nightly, on the others."""
    for chunk in range(CHUNKS):
        for index, devices in enumerate(UNCHECKED):
            is_daily = chunk % len(UNCHECKED) == index
            yield pytest.param(devices, chunk, marks=[] if is_daily else pytest.mark.nightly)


@pytest.mark.parametrize(("devices", "chunk"), [*each_once()])
def test_cases(devices: str, chunk: int, tmp_path: Path) -> None:
    expected = unchecked(devices)
    outcomes = [judge(case, devices.split(","), tmp_path) for case in cases()[chunk::CHUNKS]]
    assert not [outcome for outcome in outcomes if outcome.verdict == "wrong"]
    refused = [outcome for outcome in outcomes if outcome.verdict != "right"]
    assert not [outcome for outcome in refused if outcome.case not in expected]
    assert {outcome.case for outcome in refused} == expected.intersection(
        outcome.case for outcome in outcomes
    ), "a case that is listed is right now; take it off the list"
