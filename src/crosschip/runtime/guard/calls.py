"""Calls of foreign code, and the errors for its exceptions."""

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
    """Return the type and first line of an exception of foreign code."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # the exception's `__str__` is foreign code too
        lines = []
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def failure(name: str, doing: str, error: BaseException) -> DeviceError:
    """Return the error to raise for an exception of foreign code.

    Args:
        name: the name of the device.
        doing: the task of the call, as in `running`.
        error: the exception.
    """
    message = first_line(error)
    if isinstance(error, Error):
        message = message.removeprefix(f"{type(error).__name__}: ")
    else:
        message = f"failed while {doing}: {message}"
    if isinstance(error, CompileError):
        named = CompileError(_prefixed(name, message))
        named.operations = error.operations
        return named
    if isinstance(error, OutOfRange):
        return error
    if isinstance(error, DeviceLost):
        return DeviceLost(_prefixed(name, message), error.seconds, name)
    return DeviceError(_prefixed(name, message))


def _prefixed(name: str, message: str) -> str:
    return message if message.startswith((f"{name} ", f"{name}:")) else f"{name}: {message}"


def call(name: str, doing: str, function: Callable[..., T], *arguments: Any) -> T:
    """Call a device's function and return its result.

    Raises:
        DeviceError: the function raised an exception.
        ModelFileError: a file of the model has changed.
    """
    try:
        return function(*arguments)
    except (ModelFileError, Abandoned):
        raise
    except BaseException as error:  # any exception of foreign code is its failure
        raise_interruption(error)
        raise failure(name, doing, error) from error


def kind_of(value: object) -> str:
    """Return the type of a device's result, in words."""
    return "None" if value is None else f"an object of type {type(value).__name__}"
