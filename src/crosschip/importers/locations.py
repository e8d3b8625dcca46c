"""Locations in messages: errors of operations and operators, prefixed with where they arose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crosschip.ir import ModelError, ModelFileError, UnsupportedError
from crosschip.ops.definition.slots import ComputedParameter

REFUSALS = (UnsupportedError, ComputedParameter, ModelError, ModelFileError)
"""The errors raised where something breaks a rule or cannot be expressed."""


def prefix_error(location: str, error: Exception) -> ModelFileError | UnsupportedError:
    """Prefix one of `REFUSALS` with a location and convert it to a public error.

    Violations of a rule, of the format or of a standard operator, become a `ModelFileError`.
    """
    if isinstance(error, UnsupportedError | ComputedParameter):
        return UnsupportedError(f"{location}: {error}")
    return ModelFileError(f"{location}: {error}")


@contextmanager
def located(location: str) -> Iterator[None]:
    """Prefix errors with a location; see `prefix_error`."""
    try:
        yield
    except REFUSALS as error:
        raise prefix_error(location, error) from None
