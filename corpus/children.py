"""Running a part of the corpus in a process of its own, within a time."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import dataclass

from corpus.entry import ROOT


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a process.

    Attributes:
        printed: its lines.
        failure: how it failed, in words; empty if it did not.
    """

    printed: list[str]
    failure: str


def run(module: str, *arguments: str, seconds: float) -> Ended:
    """Run a module of the corpus in a new interpreter.

    Args:
        module: its name, without the package's.
        arguments: for it.
        seconds: after which it is ended.
    """
    command = [sys.executable, "-m", f"corpus.{module}", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as expired:
        said = expired.stdout or b""
        lines = (said if isinstance(said, str) else said.decode(errors="replace")).splitlines()
        return Ended(lines, f"not done within {seconds:g} s")
    printed = done.stdout.splitlines()
    if done.returncode < 0:
        return Ended(printed, signal.strsignal(-done.returncode) or f"signal {-done.returncode}")
    if done.returncode:
        return Ended(printed, (done.stderr.strip().splitlines() or ["failed"])[-1])
    return Ended(printed, "")
