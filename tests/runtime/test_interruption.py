"""The tests of `interruption.py`, in a process of their own.

They raise exceptions at random places in whatever runs on the main thread, and set signal handlers;
what other tests have left in a process is none of their business, nor the other way round.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.modelling import ROOT

TESTS = Path(__file__).with_name("interruption.py")


@pytest.mark.slow
def test_exceptions_of_handlers_and_other_threads_go_through() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "18 passed" in done.stdout
