"""Registry of operators by name, and import of modules that belong to their families."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

_registry: dict[str, type[Operator]] = {}

OperatorT = TypeVar("OperatorT", bound="type[Operator]")


def operator(name: str, *, core: bool = False) -> Callable[[OperatorT], OperatorT]:
    """Register the decorated class as an operator.

    Args:
        name: NNAdapter's name if it has the operator, else NNRt's, else a name in their style.
        core: whether it is a core operator; all others can be decomposed into core operators.
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
    """Return the standard or packaged operator with a name; raise KeyError if there is none."""
    operator = _registry.get(name)
    if operator is not None:
        return operator
    # Imported here because packages import this module.
    from crosschip.ops.packages import packaged_operators

    return packaged_operators()[name]


def operators() -> Mapping[str, type[Operator]]:
    """Return all registered operators, by name."""
    return dict(sorted(_registry.items()))


_STANDARD = "crosschip.ops.standard"


def import_family(package: str, operator: type[Operator]) -> None:
    """Import a package's module for the family of an operator.

    Operators outside `crosschip.ops.standard` have no family, and nothing is imported for them.
    """
    home, _, family = operator.__module__.rpartition(".")
    if home == _STANDARD:
        import_module(f"{package}.{family}")
