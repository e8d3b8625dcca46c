"""Calls of foreign code, and the errors that come of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from crosschip.hal import (
    CompileError,
    DeviceLost,
)
from crosschip.hal.device import OutOfRange
from crosschip.ir import (
    DeviceError,
    Error,
    ModelFileError,
)
from crosschip.ir.interruption import raise_interruption
from crosschip.runtime.programs import Abandoned

T = TypeVar("T")


def first_line(error: BaseException) -> str:
    """The text of an exception of foreign code, short enough for a message of ours."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # even telling what went wrong is foreign code
        lines = []
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def failure(name: str, doing: str, error: BaseException) -> DeviceError:
    """The error to raise for what foreign code raised.

    Args:
        name: the device's.
        doing: what it was asked for, as in `running`.
        error: what it raised.
    """
    own = isinstance(error, Error)
    message = (
        first_line(error).removeprefix(f"{type(error).__name__}: ") if own else first_line(error)
    )
    if not own:
        message = f"failed while {doing}: {message}"
    if isinstance(error, CompileError):
        named = CompileError(_signed(name, message))
        named.operations = error.operations
        return named
    if isinstance(error, OutOfRange):
        return error
    if isinstance(error, DeviceLost):
        return DeviceLost(_signed(name, message), error.seconds, name)
    return DeviceError(_signed(name, message))


def _signed(name: str, message: str) -> str:
    return message if message.startswith((f"{name} ", f"{name}:")) else f"{name}: {message}"


def call(name: str, doing: str, function: Callable[..., T], *arguments: Any) -> T:
    """The result of a device's function.

    Raises:
        DeviceError: it raised something.
        ModelFileError: a file of the model has changed.
    """
    try:
        return function(*arguments)
    except (ModelFileError, Abandoned):
        raise
    except BaseException as error:  # foreign code: whatever it raises is its failure
        raise_interruption(error)
        raise failure(name, doing, error) from error


def kind_of(value: object) -> str:
    """The sort of thing that a device returned, in words."""
    return "None" if value is None else f"an object of type {type(value).__name__}"
