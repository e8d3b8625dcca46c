"""Hierarchy of the errors that crosschip raises; all derive from `Error`.

A message says what was wrong, where (file, operator, slot) and what to do about it.
`install_command` helps with missing optional dependencies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Error(Exception):
    """Base of all exceptions that crosschip raises deliberately; all can be pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        # `Exception.__reduce__` passes only the message, but some constructors take more arguments.
        return _error_with_arguments, (type(self), self.args), self.__dict__ or None


def _error_with_arguments(error_type: type[Error], arguments: tuple[object, ...]) -> Error:
    """Return an unpickled error; pickle sets its attributes afterwards."""
    error: Error = error_type.__new__(error_type, *arguments)
    return error


class ModelError(Error):
    """A model breaks a rule of the intermediate representation or of an operator."""


class ElementTypeError(ModelError):
    """An operator does not take operands of an element type."""


class ModelFileError(Error):
    """A model file is missing, damaged, or not in a format that an importer knows."""


class UnsupportedError(Error):
    """A model is valid, but an importer or all available devices lack something that it uses."""


class BudgetError(Error):
    """Loading or compiling a model takes more than its budget allows; see `Budget`."""


class InputError(Error):
    """A name, shape, element type, layout or option that the caller passed in does not fit."""


class DeviceError(Error):
    """A device is unknown, failed to load, or failed while compiling or running."""


class DeadlineError(Error, TimeoutError):
    """A request was not answered before its deadline."""


class QueueFullError(Error):
    """A request was rejected because the queue is full."""


class CacheError(Error):
    """The compilation cache cannot be used as requested."""


@contextmanager
def importing(engine: str, extra: str) -> Iterator[None]:
    """Import an engine in the context.

    Args:
        engine: the engine, for the message.
        extra: the optional dependency that installs it.

    Raises:
        DeviceError: the import failed.
    """
    try:
        yield
    except ImportError as error:
        message = f"{engine} cannot be imported ({error}); {install_command(extra)}"
        raise DeviceError(message) from error


def install_command(extra: str) -> str:
    """Return the command that installs an optional dependency, quoted for all shells.

    >>> install_command("openvino")
    'pip install "crosschip[openvino]"'
    """
    return f'pip install "crosschip[{extra}]"'
