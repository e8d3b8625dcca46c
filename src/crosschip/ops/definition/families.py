"""Import of modules that belong to a family of standard operators."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

_STANDARD = "crosschip.ops.standard"


def import_family(package: str, operator: type[Operator]) -> None:
    """Import a package's module for the family of an operator.

    Operators outside `crosschip.ops.standard` have no family, and nothing is imported for them.
    """
    home, _, family = operator.__module__.rpartition(".")
    if home == _STANDARD:
        import_module(f"{package}.{family}")
