"""The nightly lane: what the whole suite runs a part of, and `--nightly` runs whole."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from crosschip.conformance import Case, all_cases

NIGHTLY = "nightly"
"""The option of the command line, and the mark of tests that run only with it."""


@cache
def quick_kit() -> tuple[Case, ...]:
    """The quick cases of the conformance kit, generated once in a process."""
    return tuple(all_cases(quick=True))


def share(cases: Iterable[Case], config: pytest.Config, part: int = 12) -> list[Case]:
    """Select one of `part` cases, the same in every run; all of them in the nightly lane."""
    nightly = config.getoption(NIGHTLY)
    return [case for case in cases if nightly or zlib.crc32(case.id.encode()) % part == 0]


def first_or_nightly(values: Iterable[Any], first: int = 1) -> list[Any]:
    """Values of a test's parameter, of which all but the first ones run in the nightly lane."""
    marks = (pytest.mark.nightly,)
    return [
        value if index < first else pytest.param(value, marks=marks)
        for index, value in enumerate(values)
    ]
