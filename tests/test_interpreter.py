"""Interpreters beside the main one, which NumPy does not know."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import crosschip
if "numpy" in sys.argv:
    import numpy
assert ("numpy" in sys.modules) == ("numpy" in sys.argv), "importing crosschip imports no NumPy"
second = interpreters.create()
try:
    told = interpreters.run_string(second, "import crosschip; crosschip.load")
except Exception as error:
    told = error
print(told)
"""


def test_a_second_interpreter_is_refused_with_a_sentence() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE, "numpy"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "crosschip needs NumPy, which only one interpreter of a process can" in ended.stdout
    assert "use crosschip in the main interpreter" in ended.stdout


def test_the_first_that_needs_numpy_is_not_refused() -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE], capture_output=True, text=True, check=True
    )
    assert "crosschip needs" not in ended.stdout
