"""The standard operators.

Importing the package registers every operator of every family in `crosschip.ops.standard`; adding
a family is adding a file. Examples and names in other systems are imported when asked for.
"""

from importlib import import_module
from pkgutil import iter_modules

from crosschip.ops import standard
from crosschip.ops.definition.examples import examples_of
from crosschip.ops.definition.faces import faces_of
from crosschip.ops.definition.operator import Operator, operator, operator_named, operators

for _module in iter_modules(standard.__path__):
    import_module(f"{standard.__name__}.{_module.name}")

__all__ = ["Operator", "examples_of", "faces_of", "operator", "operator_named", "operators"]
