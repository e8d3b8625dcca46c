"""Settings that are accepted without effect: decorators and a warning, once per process."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from crosschip.ir import InputError

T = TypeVar("T")

_EMPTY = inspect.Parameter.empty


class IgnoredSettings:
    """Settings that have been used without effect.

    Args:
        logger: where they are reported.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._reported: set[str] = set()

    def warn_once(self, name: str, reason: str = "has no meaning here") -> None:
        """Warn, once per name, that a setting is accepted without effect."""
        if name not in self._reported:
            self._reported.add(name)
            self._logger.warning("%s is accepted, but %s", name, reason)


def ignored_methods(
    ignored: IgnoredSettings,
    methods: Mapping[str, Mapping[str, object]],
    reasons: Mapping[str, str] | None = None,
) -> Callable[[type[T]], type[T]]:
    """Decorate a class: add methods that accept their arguments and have no effect.

    Args:
        ignored: where their use is reported.
        methods: the defaults of each method's parameters, by name; `...` for one without a
            default.
        reasons: the reason to report instead of "has no meaning here", by method.
    """

    def decorate(kind: type[T]) -> type[T]:
        for name, parameters in methods.items():
            setattr(
                kind, name, _ignored_method(ignored, name, parameters, (reasons or {}).get(name))
            )
        return kind

    return decorate


def constant_methods(constants: Mapping[str, object]) -> Callable[[type[T]], type[T]]:
    """Decorate a class: add methods without parameters that return a constant."""

    def decorate(kind: type[T]) -> type[T]:
        for name, constant in constants.items():
            setattr(kind, name, _constant_method(name, constant))
        return kind

    return decorate


def _constant_method(name: str, constant: object) -> Callable[[object], object]:
    def method(self: object) -> object:
        return constant

    method.__name__ = name
    method.__doc__ = f"Return {constant!r}."
    return method


def _ignored_method(
    ignored: IgnoredSettings, name: str, parameters: Mapping[str, object], reason: str | None
) -> Callable[..., None]:
    signature = inspect.Signature(
        [
            inspect.Parameter(
                parameter,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=_EMPTY if default is ... else default,
            )
            for parameter, default in parameters.items()
        ]
    )
    warn_once = (
        partial(ignored.warn_once, name)
        if reason is None
        else partial(ignored.warn_once, name, reason)
    )

    def method(self: object, *args: Any, **kwargs: Any) -> None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InputError(f"{name}{signature}: {error}") from None
        warn_once()

    method.__name__ = name
    method.__doc__ = f"Accepted; {reason or 'it has no meaning here'}."
    return method
