"""Quirks of LiteRT, with reproductions; see `crosschip.devices.kits.quirks`."""

from __future__ import annotations

from crosschip.devices.litert.quirks import elementwise, layers, quantized
from crosschip.devices.litert.quirks.registry import quirk

__all__ = ["elementwise", "layers", "quantized", "quirk"]
