"""The conformance kit on chips' compilers: a sample of its cases, since emulation is slow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

SAMPLES = {
    "float16": ("--quick", "--type", "float16"),
    "quantized": ("--case", "*/0/quantized-*int8"),
    "moved": ("--case", "*/0/int32"),
}
"""The options that choose the cases of each sample."""


def report(chip: str, options: Sequence[str]) -> Any:
    """The kit's report, in a process of its own as its users run it."""
    found = subprocess.run(
        [sys.executable, "-m", "crosschip", "conformance", chip, "--json", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode in (0, 1), found.stderr
    return json.loads(found.stdout)


@pytest.mark.parametrize("sample", SAMPLES)
def test_all_that_a_chip_takes_is_right(chip: str, sample: str) -> None:
    result = report(chip, SAMPLES[sample])
    assert result["failures"] == []
    assert result["not_run"] == 0
    assert result["pass"] > 0
    for operator, about in result["operators"].items():
        for reason in about["reasons"]:
            assert reason.startswith(operator)
