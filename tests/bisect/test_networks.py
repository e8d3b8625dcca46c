"""A real network on a real engine with wrong converters."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bisect.planted import Fault, Planted

from crosschip.bisect import find_failing_operators


@pytest.mark.parametrize(("base", "hides"), [("onnxruntime", "outputs")])
def test_culprits_in_mobilenet(models: Path, base: str, hides: str) -> None:
    """One channel off by 1e-3, an element that is no number, and 122 operations."""
    faults = [Fault(("Conv.26",)), Fault(("Mul.2",), "nan")]
    device = Planted(base=base, faults=faults, hides=hides)
    path = models / "onnx" / "mobilenet_v3_small.onnx"
    report = find_failing_operators(path, device, shapes={"x": [1, 3, 224, 224]})
    assert {culprit.names: culprit.manner for culprit in report.failing_operators} == {
        ("Mul.2",): "nan",
        ("Conv.26",): "wrong",
    }
    assert report.explained
    assert report.runs <= 2 * (4 * 7 + 20)
