"""A vendor's tool with every bad habit, for tests of those who call it."""

import os
import sys
import time
from typing import Any

import numpy as np

RUNS = 0


def describe() -> dict[str, str]:
    """The tool's description of itself."""
    print("Welcome to BrokenTool!")
    os.system("echo and welcome from its library")
    return {"version": "0.1"}


def echo(value: Any) -> Any:
    """The argument."""
    return value


def number() -> int:
    """The number of the process."""
    return os.getpid()


def where() -> str:
    """The working directory."""
    return os.getcwd()


def refuse(text: str) -> None:
    """Raise an error, after printing."""
    print("details on standard output")
    print("details on standard error", file=sys.stderr)
    raise ValueError(text)


def abort() -> None:
    """End the process as a failed assertion does."""
    os.write(2, b"Assertion `tiles > 0' failed.\n")
    os.abort()


def leave(status: int) -> None:
    """End the process."""
    os._exit(status)


def hang() -> None:
    """Never return."""
    time.sleep(3600)


def cut() -> None:
    """End the process in the middle of an answer."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\xff\x00\x00\x00{")
        except OSError:
            continue
    os._exit(0)


def run(inputs: list[Any]) -> list[Any]:
    """The inputs, each after the other; a bool ends the process."""
    if any(array.dtype == np.bool_ and array.size for array in inputs):
        os.abort()
    return inputs[::-1]
