"""Operators defined in XML (OpDef): reading, checking, comparing, writing and implementing.

Example:
    filters = opdef.Package.read("filters.xml")

    @filters.defines("Blur")
    class Blur(opdef.CustomOperator):
        def reference(self, image):
            return uniform_filter(image, self.radius)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosschip.opdef.custom.native import NativeOperator
    from crosschip.opdef.custom.operator import CustomOperator
    from crosschip.opdef.custom.package import Package

_HOMES = {
    "CustomOperator": "crosschip.opdef.custom.operator",
    "NativeOperator": "crosschip.opdef.custom.native",
    "Package": "crosschip.opdef.custom.package",
}

__all__ = ["CustomOperator", "NativeOperator", "Package"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
