"""The standard operators.

Importing the package registers every operator of every family in `crosschip.ops.standard`; adding
a family is adding a file. Examples are imported when asked for.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from crosschip.ops import standard
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.registry import operator, operator_named, operators

if TYPE_CHECKING:
    from crosschip.ops.definition.examples import examples_of as examples_of

_HOMES = {
    "examples_of": "crosschip.ops.definition.examples",
}

for _module in iter_modules(standard.__path__):
    import_module(f"{standard.__name__}.{_module.name}")

__all__ = ["Operator", "examples_of", "operator", "operator_named", "operators"]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return found
