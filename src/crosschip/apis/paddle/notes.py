"""Settings that are accepted and have no meaning here: each is said once in a process."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from crosschip.ir import InputError

T = TypeVar("T")

_EMPTY = inspect.Parameter.empty


class Notes:
    """Names of settings that have been used without effect.

    Args:
        logger: where they are told.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._reported: set[str] = set()

    def say(self, name: str, why: str = "has no meaning here") -> None:
        """Tell that a setting has been accepted without effect, unless it has been told."""
        if name not in self._reported:
            self._reported.add(name)
            self._logger.warning("%s is accepted, but %s", name, why)


def idle(
    notes: Notes, methods: Mapping[str, Mapping[str, object]], why: Mapping[str, str] | None = None
) -> Callable[[type[T]], type[T]]:
    """Decorator that gives a class methods without effect.

    Args:
        notes: where it is said that they have none.
        methods: for each name, the defaults of its parameters by name; `...` for one without.
        why: other words than the usual ones, by method.
    """

    def added(kind: type[T]) -> type[T]:
        for name, parameters in methods.items():
            setattr(kind, name, _method(notes, name, parameters, (why or {}).get(name)))
        return kind

    return added


def answering(answers: Mapping[str, object]) -> Callable[[type[T]], type[T]]:
    """Decorator that gives a class methods without parameters, each of which has one answer."""

    def added(kind: type[T]) -> type[T]:
        for name, answer in answers.items():
            setattr(kind, name, _answer(name, answer))
        return kind

    return added


def _answer(name: str, answer: object) -> Callable[[object], object]:
    def method(self: object) -> object:
        return answer

    method.__name__ = name
    method.__doc__ = f"Always {answer!r}."
    return method


def _method(
    notes: Notes, name: str, parameters: Mapping[str, object], why: str | None
) -> Callable[..., None]:
    signature = inspect.Signature(
        [
            inspect.Parameter(
                each,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=_EMPTY if default is ... else default,
            )
            for each, default in parameters.items()
        ]
    )
    say = partial(notes.say, name) if why is None else partial(notes.say, name, why)

    def method(self: object, *args: Any, **kwargs: Any) -> None:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InputError(f"{name}{signature}: {error}") from None
        say()

    method.__name__ = name
    method.__doc__ = f"Accepted; {why or 'it has no meaning here'}."
    return method
