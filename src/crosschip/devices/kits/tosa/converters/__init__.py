"""Converters of the standard operators, one module per family."""

from importlib import import_module
from pkgutil import iter_modules

from crosschip.devices.kits.tosa.converters.table import converters

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["converters"]
