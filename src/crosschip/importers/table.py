"""Registry from a framework's operators to the functions that import them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from crosschip.ir import UnsupportedError

Function = TypeVar("Function", bound=Callable[..., object])


class ImportTable(Generic[Function]):
    """Import functions by operator name; one function may serve several operators."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def imports(self, *names: str) -> Callable[[Function], Function]:
        """Return a decorator that registers a function for the operators of these names."""

        def register(function: Function) -> Function:
            for name in names:
                if name in self._functions:
                    raise ValueError(f"two functions import {name}")
                self._functions[name] = function
            return function

        return register

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def names(self) -> list[str]:
        """Return the operators that have a function."""
        return list(self._functions)

    def check(self, where: str, names: Iterable[str]) -> None:
        """Raise unless each operator name has a function; the message counts the others.

        Raises:
            UnsupportedError: at least one operator has no function.
        """
        unknown = Counter(name for name in names if name not in self._functions)
        if unknown:
            counts_text = ", ".join(f"{name} ({count})" for name, count in sorted(unknown.items()))
            raise UnsupportedError(
                f"{where}: no importer for {len(unknown)} of the model's operators: {counts_text}"
            )
