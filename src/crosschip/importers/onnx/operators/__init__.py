"""The functions that import ONNX operators: a file a family, a function an operator.

Importing the package registers all of them in `TABLE`; adding a family is adding a file.
"""

from importlib import import_module
from pkgutil import iter_modules

from crosschip.importers.onnx.node import TABLE

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["TABLE"]
