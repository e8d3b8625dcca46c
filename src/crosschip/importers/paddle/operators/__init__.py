"""The functions that import Paddle's operators: a file a family, a function an operator.

Importing the package registers every function; adding a family is adding a file.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
