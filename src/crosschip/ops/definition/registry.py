"""The operators there are, by name: each registers itself where it is declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

_registry: dict[str, type[Operator]] = {}

OperatorT = TypeVar("OperatorT", bound="type[Operator]")


def operator(name: str, *, core: bool = False) -> Callable[[OperatorT], OperatorT]:
    """Class decorator: register an operator under its standard name.

    Args:
        name: NNAdapter's name for it if there is one, else NNRt's, else one in their style.
        core: whether all operators that are not core can be decomposed into this and its like.
    """

    def register(cls: OperatorT) -> OperatorT:
        if name in _registry:
            raise ValueError(f"there are two operators called {name}")
        cls.type = name
        cls.core = core
        _registry[name] = cls
        return cls

    return register


def operator_named(name: str) -> type[Operator]:
    """The operator of a name, a standard one or one of a package; `KeyError` if there is none."""
    operator = _registry.get(name)
    if operator is not None:
        return operator
    # Packages are made of operators: to look for them before one is asked for goes in a circle.
    from crosschip.ops.packages import packaged_operators

    return packaged_operators()[name]


def operators() -> Mapping[str, type[Operator]]:
    """All operators that have been registered, by name."""
    return dict(sorted(_registry.items()))
