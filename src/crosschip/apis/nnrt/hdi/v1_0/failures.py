"""Conversion of exceptions to `HdiError` with the codes of version 1.0."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.ir import Error, ModelError, UnsupportedError


class HdiErrors:
    """A mixin that converts exceptions to `HdiError` with the codes of version 1.0."""

    def failure(self, error: Error) -> HdiError:
        """Convert an error."""
        if isinstance(error, HdiError):
            return error
        code = ReturnCode.HDF_FAILURE
        if isinstance(error, UnsupportedError):
            code = ReturnCode.HDF_ERR_NOT_SUPPORT
        elif isinstance(error, ModelError):
            code = ReturnCode.HDF_ERR_INVALID_PARAM
        return HdiError(code, str(error))


S = TypeVar("S", bound=HdiErrors)
P = ParamSpec("P")
T = TypeVar("T")


def with_codes(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method: convert its errors to `HdiError`."""

    @wraps(method)
    def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(self, *args, **kwargs)
        except Error as error:
            converted = self.failure(error)
            if converted is error:
                raise
            raise converted from error

    return wrapper


def unsupported(message: str) -> HdiError:
    """Return an error for an unsupported feature."""
    return HdiError(ReturnCode.HDF_ERR_NOT_SUPPORT, message)


def invalid(message: str) -> HdiError:
    """Return an error for an invalid argument."""
    return HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, message)
