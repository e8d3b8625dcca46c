"""Networks on chips' compilers, with the processor for what they decline."""

from __future__ import annotations

import pytest
from benchmarks.chips import FLOAT16, INT8, run

NETWORKS = ("MobileNetV1", "PP-OCRv4 rec")
"""Those that emulators run in less than a minute; `python -m benchmarks.chips` has all."""


@pytest.mark.parametrize("precision", [FLOAT16, INT8])
@pytest.mark.parametrize("network", NETWORKS)
def test_networks_say_what_they_say_in_float32(network: str, precision: str, chip: str) -> None:
    row = run(network, chip, precision)
    assert row.share > 0.9
    assert row.met
