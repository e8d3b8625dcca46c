"""The process that runs LiteRT or devices: a call that ends it is reported, and others run."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from tests.importers.tflite.single_operator import Worker


def _halve(number: int) -> int:
    """Return the half of an even number; an odd one ends the process."""
    if number % 2:
        os.abort()
    return number // 2


@pytest.mark.slow
def test_a_call_that_ends_the_process_is_reported() -> None:
    with closing(Worker()) as worker:
        first, second, third = worker.map(_halve, [(4,), (5,), (6,)])
        assert (first, third) == (2, 3)
        assert str(second) == "_halve ends or blocks the process"
        assert worker.map(_halve, [(8,)]) == [4]
