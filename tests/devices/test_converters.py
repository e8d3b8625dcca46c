"""How long it takes to say how an engine does an operator."""

from __future__ import annotations

import inspect
from importlib import import_module
from statistics import median

import pytest


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_the_median_converter_has_at_most_six_lines(engine: str) -> None:
    table = import_module(f"crosschip.devices.{engine}.converters").converters
    lengths = [
        sum(bool(line.strip()) for line in inspect.getsourcelines(convert)[0])
        for convert in table.functions
    ]
    assert len(lengths) >= 100
    assert median(lengths) <= 6
