"""Quirks of OpenVINO, with reproductions; see `crosschip.devices.kits.quirks`."""

from __future__ import annotations

from crosschip.devices.openvino.quirks import elementwise, networks, shapes, types
from crosschip.devices.openvino.quirks.registry import quirk

__all__ = ["elementwise", "networks", "quirk", "shapes", "types"]
