"""The functions that import Paddle's operators, one module per family.

Importing the package imports all its modules, which register the functions. Operators of Paddle 3
also need an entry in `dialect`.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
