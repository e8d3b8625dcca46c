"""Packages written for ONNX Runtime answer the same on crosschip, unmodified."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from benchmarks.programs import names
from benchmarks.programs._answers import discrepancies, plain
from benchmarks.programs._process import DEVICES, MissingError, Program, differences
from tests.apis.onnxruntime.models import SUM, both

_OTHERS = [pytest.param(devices, marks=pytest.mark.nightly) for devices in DEVICES[1:]]


@cache
def _expected(name: str) -> Any:
    """Return what a program answers on ONNX Runtime itself."""
    with Program.start(name) as program:
        return program.answer


@pytest.mark.slow
@pytest.mark.parametrize("devices", [DEVICES[0], *_OTHERS])
@pytest.mark.parametrize("name", names())
def test_they_answer_as_on_onnxruntime(name: str, devices: str) -> None:
    try:
        expected = _expected(name)
    except MissingError as error:
        pytest.skip(str(error))
    with Program.start(name, devices) as program:
        assert not differences(name, program.answer, expected)
        assert program.run() > 0


def test_answers_that_differ_are_told() -> None:
    expected = plain({"text": ["a", "b"], "boxes": [[1.0, 2.0], [3.0, 4.0]], "n": 3})
    near = plain({"text": ["a", "b"], "boxes": [[1.0, 2.0], [3.0, 4.001]], "n": 3})
    assert not discrepancies(near, expected)
    other = plain({"text": ["a", "c"], "boxes": [[1.0, 2.0], [3.0, 4.1]], "n": 4})
    assert [line.partition(":")[0] for line in discrepancies(other, expected)] == [
        "/text/1",
        "/boxes",
        "/n",
    ]
    assert discrepancies(plain({"text": []}), expected)


def test_answers_may_differ_as_far_as_those_for_changed_inputs() -> None:
    expected, other, changed = (plain({"mask": [1.0, 0.5, mask]}) for mask in (0.0, 0.3, 0.2))
    assert discrepancies(other, expected)
    assert not discrepancies(other, expected, changed)
    assert discrepancies(plain({"mask": [1.0, 0.5, 0.5]}), expected, changed)


def test_sessions_have_the_private_names_that_packages_read() -> None:
    session, real = both(SUM)
    for name in ("_providers", "_provider_options"):
        assert getattr(session, name) == getattr(real, name)
