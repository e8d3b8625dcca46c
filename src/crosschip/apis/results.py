"""Return codes of the interfaces: convert exceptions to codes and keep the last error's text."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import wraps
from typing import Generic, ParamSpec, TypeVar

from crosschip.ir import Error

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=IntEnum)
H = TypeVar("H", bound="Handle")

_last = threading.local()


class Failure(Exception):
    """An error that states the code to return.

    Attributes:
        code: the code that the function returns.
    """

    def __init__(self, code: IntEnum, text: str) -> None:
        super().__init__(text)
        self.code = code


def check(code: IntEnum) -> None:
    """Raise `Error` with the last error's text unless a function's code is 0, success."""
    if code:
        raise Error(f"{last_error()} ({code.name})")


class Handle:
    """An opaque object that a program owns and must destroy."""

    def __init__(self) -> None:
        self.destroyed = False

    def destroy(self) -> None:
        """Release the resources; functions refuse the handle afterwards."""
        self.destroyed = True


class Results(Generic[C]):
    """Decorators that turn a function's exceptions into an interface's codes.

    Args:
        logger: where failures are logged.
        success: the code of success.
        invalid: the code for an invalid argument.
        codes: the codes of other exceptions; the first whose type matches is used, the last
            matches all.
    """

    def __init__(
        self,
        logger: logging.Logger,
        success: C,
        invalid: C,
        codes: Sequence[tuple[type[Exception], C]],
    ) -> None:
        self._logger = logger
        self._success = success
        self._invalid = invalid
        self._codes = codes

    def invalid(self, text: str) -> Failure:
        """Return a failure for an invalid argument."""
        return Failure(self._invalid, text)

    def live(self, handle: object, kind: type[H]) -> H:
        """Return a handle after checking that it can be used.

        Raises:
            Failure: the object is no such handle, or has been destroyed.
        """
        if not isinstance(handle, kind):
            raise self.invalid(f"{kind.__name__}: {handle!r} is none")
        if handle.destroyed:
            raise self.invalid(f"{kind.__name__}: this one has been destroyed")
        return handle

    def returns_code(self, function: Callable[P, None]) -> Callable[P, C]:
        """Decorate a function that returns a code alone."""

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> C:
            try:
                function(*args, **kwargs)
            except Exception as error:
                return self.failed(function.__name__, error)
            return self._success

        return wrapper

    def returns_value(self, function: Callable[P, T]) -> Callable[P, tuple[C, T | None]]:
        """Decorate a function that returns a code and a value, `None` on failure."""

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> tuple[C, T | None]:
            try:
                return self._success, function(*args, **kwargs)
            except Exception as error:
                return self.failed(function.__name__, error), None

        return wrapper

    def returns_handle(self, function: Callable[P, T]) -> Callable[P, T | None]:
        """Decorate a function that returns a value alone, `None` on failure."""

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                self.failed(function.__name__, error)
                return None

        return wrapper

    def returns_nothing(self, function: Callable[P, None]) -> Callable[P, None]:
        """Decorate a function that returns nothing: a failure is only logged."""

        @wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except Exception as error:
                self.failed(function.__name__, error)

        return wrapper

    def failed(self, name: str, error: Exception) -> C:
        """Log an exception, keep its text for `last_error` and return its code."""
        code: C
        if isinstance(error, Failure):
            code = error.code  # type: ignore[assignment]  # the interface's own
        else:
            code = next(code for kind, code in self._codes if isinstance(error, kind))
        is_ours = isinstance(error, Failure | Error)
        message = str(error) if is_ours else f"{type(error).__name__}: {error}"
        _last.text = f"{name}: {message}"
        self._logger.warning("%s (%s)", _last.text, code.name)
        if not is_ours:
            self._logger.debug("%s", name, exc_info=error)
        return code


def last_error() -> str:
    """Return the text of this thread's last failure; empty if none."""
    return getattr(_last, "text", "")
