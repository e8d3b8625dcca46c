"""Import functions of TensorFlow Lite's operators: a file per family, a function per operator.

Importing the package imports all files and so registers the functions in `TABLE`.
"""

from importlib import import_module
from pkgutil import iter_modules

from crosschip.importers.tflite.node import TABLE

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["TABLE"]
