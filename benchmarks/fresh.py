"""Running measured programs in fresh processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.models import ROOT

_UNCOMPILED = "PYTHONDONTWRITEBYTECODE"

_ANSWERED = "answered\n"
"""The line that a process writes when it has its first answer."""


def run(child: str, *arguments: object, seconds: float | None = None) -> Any:
    """Run a module of `benchmarks.children` in a new interpreter.

    Args:
        child: the name of the module.
        arguments: for it.
        seconds: the time after which it is ended, with the processes that it started.

    Returns:
        The JSON document that it prints.

    Raises:
        subprocess.CalledProcessError: it fails.
        subprocess.TimeoutExpired: it takes too long.
    """
    command = [sys.executable, "-m", f"benchmarks.children.{child}", *map(str, arguments)]
    with subprocess.Popen(
        command, cwd=ROOT, env=_environment(), stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except BaseException:  # an interruption does not reach another session
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return json.loads(output)


def seconds_to_answer(command: Sequence[str], **variables: str) -> float:
    """Start a process, and return the seconds until it has its first answer.

    Args:
        command: the program with its arguments.
        variables: environment variables besides those of this process.

    Raises:
        subprocess.CalledProcessError: the process ended without an answer.
    """
    environment = _environment() | variables
    start = time.perf_counter()
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None, "it is piped"
        line = process.stdout.readline()
        seconds = time.perf_counter() - start
    if line != _ANSWERED:
        raise subprocess.CalledProcessError(process.returncode, command)
    return seconds


def _environment() -> dict[str, str]:
    """Return the environment of this process, in which Python writes compiled modules.

    An installed package is compiled; so is what is measured, from the second run on.
    """
    return {name: text for name, text in os.environ.items() if name != _UNCOMPILED}
