"""The ONNX nodes that stand for each standard operator: a file a family, a function an operator."""

from importlib import import_module
from pkgutil import iter_modules

from crosschip.devices.kits.onnx.converters.table import converters

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["converters"]
