"""Results of functions: a code, alone or with a value, and the text of the last failure.

This is the one place where exceptions become codes.
"""

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
    """A failure whose code is known where it happens.

    Attributes:
        code: the code that the function returns.
    """

    def __init__(self, code: IntEnum, text: str) -> None:
        super().__init__(text)
        self.code = code


def check(code: IntEnum) -> None:
    """`Error` with the text of the last failure if a function's code is not that of success, 0."""
    if code:
        raise Error(f"{last_error()} ({code.name})")


class Handle:
    """A program's hold on an object: to be handed back, and looked into by no one."""

    def __init__(self) -> None:
        self.destroyed = False

    def destroy(self) -> None:
        """Release what it holds; functions refuse it from now on."""
        self.destroyed = True


class Results(Generic[C]):
    """The codes of an interface.

    Args:
        logger: where failures are told.
        success: the code of what succeeds.
        invalid: the code of an argument that does not fit.
        codes: the codes of other exceptions; the first that fits counts, and one fits all.
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
        """A failure for an argument that does not fit."""
        return Failure(self._invalid, text)

    def live(self, handle: object, kind: type[H]) -> H:
        """A handle that can be used.

        Raises:
            Failure: it is none, one of another kind, or has been destroyed.
        """
        if not isinstance(handle, kind):
            raise self.invalid(f"{kind.__name__}: {handle!r} is none")
        if handle.destroyed:
            raise self.invalid(f"{kind.__name__}: this one has been destroyed")
        return handle

    def returns_code(self, function: Callable[P, None]) -> Callable[P, C]:
        """Decorator of a function that answers with a code alone."""

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> C:
            try:
                function(*args, **kwargs)
            except Exception as error:
                return self.failed(function.__name__, error)
            return self._success

        return answer

    def returns_value(self, function: Callable[P, T]) -> Callable[P, tuple[C, T | None]]:
        """Decorator of a function that answers with a code and a value, `None` on failure."""

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> tuple[C, T | None]:
            try:
                return self._success, function(*args, **kwargs)
            except Exception as error:
                return self.failed(function.__name__, error), None

        return answer

    def returns_handle(self, function: Callable[P, T]) -> Callable[P, T | None]:
        """Decorator of a function that answers with a value alone, `None` on failure."""

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> T | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                self.failed(function.__name__, error)
                return None

        return answer

    def returns_nothing(self, function: Callable[P, None]) -> Callable[P, None]:
        """Decorator of a function that answers nothing: a failure is only told."""

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except Exception as error:
                self.failed(function.__name__, error)

        return answer

    def failed(self, name: str, error: Exception) -> C:
        """The code of an exception, after its text has been kept and logged."""
        code: C
        if isinstance(error, Failure):
            code = error.code  # type: ignore[assignment]  # the interface's own
        else:
            code = next(code for kind, code in self._codes if isinstance(error, kind))
        known = isinstance(error, Failure | Error)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        _last.text = f"{name}: {message}"
        self._logger.warning("%s (%s)", _last.text, code.name)
        if not known:
            self._logger.debug("%s", name, exc_info=error)
        return code


def last_error() -> str:
    """The text of the last failure in this thread; empty if there has been none."""
    return getattr(_last, "text", "")
