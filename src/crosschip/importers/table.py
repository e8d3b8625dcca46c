"""The table from a framework's operators to the functions that import them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from crosschip.ir import UnsupportedError

Function = TypeVar("Function", bound=Callable[..., object])


class ImportTable(Generic[Function]):
    """One function an operator (or for a few that are alike), registered by name."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def imports(self, *names: str) -> Callable[[Function], Function]:
        """Decorator: the function imports the operators of these names."""

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

    def check(self, where: str, names: Iterable[str]) -> None:
        """Refuse a model that has operators without a function, listing them all with counts.

        Raises:
            UnsupportedError: there is at least one such operator.
        """
        unknown = Counter(name for name in names if name not in self._functions)
        if unknown:
            listed = ", ".join(f"{name} ({count})" for name, count in sorted(unknown.items()))
            raise UnsupportedError(
                f"{where}: no importer for {len(unknown)} of the model's operators: {listed}"
            )
