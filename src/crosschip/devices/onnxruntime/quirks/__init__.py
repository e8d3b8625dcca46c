"""Quirks of ONNX Runtime, with reproductions; see `crosschip.devices.kits.quirks`."""

from __future__ import annotations

from crosschip.devices.onnxruntime.quirks import elementwise, networks, shapes
from crosschip.devices.onnxruntime.quirks.raw import quirk

__all__ = ["elementwise", "networks", "quirk", "shapes"]
