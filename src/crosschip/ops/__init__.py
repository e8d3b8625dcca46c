"""The standard operators: a file a family, a class an operator.

Importing the package registers every operator of every family; adding a family is adding a file.
"""

from importlib import import_module
from pkgutil import iter_modules

from crosschip.ops.operator import Operator, operator, operator_named, operators

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["Operator", "operator", "operator_named", "operators"]
