"""Results of the functions: a code, alone or with a value, and the text of the last failure.

A function returns its code, or the code and what C stores through a pointer, `None` if it failed.
This is the one place where exceptions become codes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from crosschip.apis.nnadapter.enumerations import NNAdapterResultCode as Code
from crosschip.ir import BudgetError, DeviceError, Error, UnsupportedError

P = ParamSpec("P")
T = TypeVar("T")
H = TypeVar("H", bound="Handle")

logger = logging.getLogger("crosschip.nnadapter")

_CODES: tuple[tuple[type[Exception], Code], ...] = (
    (MemoryError, Code.NNADAPTER_OUT_OF_MEMORY),
    (BudgetError, Code.NNADAPTER_OUT_OF_MEMORY),
    (UnsupportedError, Code.NNADAPTER_FEATURE_NOT_SUPPORTED),
    (DeviceError, Code.NNADAPTER_DEVICE_INTERNAL_ERROR),
    (Error, Code.NNADAPTER_INVALID_PARAMETER),
    (Exception, Code.NNADAPTER_DEVICE_INTERNAL_ERROR),
)

_last = threading.local()


class Failure(Exception):
    """A failure whose code is known where it happens.

    Attributes:
        code: the code that the function returns.
    """

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


class Handle:
    """What a program holds of an object: to be handed back, and looked into by no one."""

    def __init__(self) -> None:
        self.destroyed = False

    def destroy(self) -> None:
        """Release what it holds; functions refuse it from now on."""
        self.destroyed = True


def invalid(text: str) -> Failure:
    """A failure for an argument that does not fit."""
    return Failure(Code.NNADAPTER_INVALID_PARAMETER, text)


def misshapen(text: str) -> Failure:
    """A failure for sizes that do not fit."""
    return Failure(Code.NNADAPTER_INVALID_DIMENSIONS, text)


def live(handle: object, kind: type[H]) -> H:
    """A handle that can be used.

    Raises:
        Failure: it is none, one of another kind, or has been destroyed.
    """
    if not isinstance(handle, kind):
        raise invalid(f"{kind.__name__}: {handle!r} is none")
    if handle.destroyed:
        raise invalid(f"{kind.__name__}: this one has been destroyed")
    return handle


def returns_code(function: Callable[P, None]) -> Callable[P, Code]:
    """Decorator of a function that answers with a code alone."""

    @wraps(function)
    def answer(*args: P.args, **kwargs: P.kwargs) -> Code:
        try:
            function(*args, **kwargs)
        except Exception as error:
            return _failed(function.__name__, error)
        return Code.NNADAPTER_NO_ERROR

    return answer


def returns_value(function: Callable[P, T]) -> Callable[P, tuple[Code, T | None]]:
    """Decorator of a function that answers with a code and a value, which is `None` on failure."""

    @wraps(function)
    def answer(*args: P.args, **kwargs: P.kwargs) -> tuple[Code, T | None]:
        try:
            return Code.NNADAPTER_NO_ERROR, function(*args, **kwargs)
        except Exception as error:
            return _failed(function.__name__, error), None

    return answer


def returns_nothing(function: Callable[P, None]) -> Callable[P, None]:
    """Decorator of a function that answers nothing: a failure is only told."""

    @wraps(function)
    def answer(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except Exception as error:
            _failed(function.__name__, error)

    return answer


def last_error() -> str:
    """The text of the last failure in this thread; empty if there has been none."""
    return getattr(_last, "text", "")


def _failed(name: str, error: Exception) -> Code:
    """The code of an exception, after its text has been kept and logged."""
    if isinstance(error, Failure):
        code = error.code
    else:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
    known = isinstance(error, Failure | Error)
    told = str(error) if known else f"{type(error).__name__}: {error}"
    _last.text = f"{name}: {told}"
    logger.warning("%s (%s)", _last.text, code.name)
    if not known:
        logger.debug("%s", name, exc_info=error)
    return code
