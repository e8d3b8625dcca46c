"""Families of standard operators, and what is kept apart from their definitions."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

_STANDARD = "crosschip.ops.standard"


def import_family(package: str, operator: type[Operator]) -> None:
    """Import the module of a package for the family that an operator belongs to.

    Nothing is imported for an operator that is not defined in `crosschip.ops.standard`.
    """
    home, _, family = operator.__module__.rpartition(".")
    if home == _STANDARD:
        import_module(f"{package}.{family}")
