"""Ctrl-C ends a command with 130 and without a traceback, wherever it comes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).with_name("crosschip")

SLOW_COMMAND = """
import time, sys
from crosschip.ir import Error
from crosschip import cli

def interrupted(*arguments):
    print("ready", flush=True)
    time.sleep(60)

sys.argv = ["crosschip", "devices"]
cli.{where} = interrupted
cli.main()
"""

SWALLOWED = """
import sys, time
from crosschip import cli

class Swallowing:
    def __del__(self):
        print("ready", flush=True)
        time.sleep(60)

def run(arguments):
    {what}

cli.run = run
cli.main()
"""


def started(script: str) -> subprocess.Popen[bytes]:
    """A process that has come to where it says so."""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def ended(process: subprocess.Popen[bytes]) -> None:
    """It ends as it should."""
    _, err = process.communicate(timeout=60)
    assert b"Traceback" not in err, err
    assert process.returncode == 130


@pytest.mark.parametrize("where", ["app", "run"])
def test_an_interruption_ends_the_command(where: str) -> None:
    process = started(SLOW_COMMAND.format(where=where))
    process.send_signal(signal.SIGINT)
    ended(process)


@pytest.mark.parametrize(
    "what",
    [
        "Swallowing()",
        "try: Swallowing.__del__(None)\n    except BaseException: return 1",
        "try: Swallowing.__del__(None)\n    except BaseException: raise ValueError('failed')",
        "try: Swallowing.__del__(None)\n    finally: sys.exit(0)",
    ],
    ids=["no place to raise it", "another status", "another exception", "success"],
)
def test_an_interruption_that_other_code_swallows(what: str) -> None:
    process = started(SWALLOWED.format(what=what))
    process.send_signal(signal.SIGINT)
    ended(process)


def test_a_second_interruption_does_not_wait() -> None:
    what = (
        "try: Swallowing.__del__(None)\n"
        "    finally:\n"
        "        print('again', flush=True)\n"
        "        time.sleep(60)"
    )
    process = started(SWALLOWED.format(what=what))
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert process.stdout.readline() == b"again\n"
    process.send_signal(signal.SIGINT)
    ended(process)


def test_interruptions_at_any_moment(tmp_path: Path) -> None:
    """Before Python has come to our code, it says what it says itself."""
    generator = random.Random(5)
    begun = SCRIPT.with_name("python")
    launch = "import crosschip.cli as cli; print('ready', flush=True); cli.main()"
    for _ in range(8):
        process = subprocess.Popen(
            [begun, "-c", launch, "devices"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.02 + generator.random() * 0.8)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert b"Traceback" not in err, err
        # A shell sees 130 of -2, too, by which Python goes when it has nothing left to do.
        assert process.returncode in (0, 130, -signal.SIGINT)
