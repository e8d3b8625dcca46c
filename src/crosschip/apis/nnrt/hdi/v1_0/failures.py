"""Failures of the methods of the interface, with the codes of its version."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.ir import Error, ModelError, UnsupportedError


class Failing:
    """Something whose methods fail with the codes of version 1.0."""

    def failure(self, error: Error) -> HdiError:
        """Return the failure of a method in which an error was raised."""
        if isinstance(error, HdiError):
            return error
        code = ReturnCode.HDF_FAILURE
        if isinstance(error, UnsupportedError):
            code = ReturnCode.HDF_ERR_NOT_SUPPORT
        elif isinstance(error, ModelError):
            code = ReturnCode.HDF_ERR_INVALID_PARAM
        return HdiError(code, str(error))


S = TypeVar("S", bound=Failing)
P = ParamSpec("P")
T = TypeVar("T")


def with_codes(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorator: errors of other kinds become `HdiError`."""

    @wraps(method)
    def called(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except Error as error:
            failure = self.failure(error)
            if failure is error:
                raise
            raise failure from error

    return called


def lacking(what: str) -> HdiError:
    """Return the error about what a device cannot do."""
    return HdiError(ReturnCode.HDF_ERR_NOT_SUPPORT, what)


def wrong(what: str) -> HdiError:
    """Return the error about what a caller says."""
    return HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, what)
