"""Converters of standard operators to JAX functions: a file a family."""

from importlib import import_module
from pkgutil import iter_modules

from crosschip.devices.kits.stablehlo.converters.table import converters

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["converters"]
