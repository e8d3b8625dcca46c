"""The functions that import Paddle's operators: a file a family, a function an operator.

Importing the package registers every function; adding a family is adding a file. An operator that
Paddle 3 has too is besides a row in `dialect`.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
