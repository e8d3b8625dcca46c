"""Converters to ONNX nodes: a module per operator family, a function per operator."""

from importlib import import_module
from pkgutil import iter_modules

from crosschip.devices.kits.onnx.converters.table import converters

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["converters"]
