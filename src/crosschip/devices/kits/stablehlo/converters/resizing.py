"""Resampling of images, decomposed to gathers or products with weight matrices."""

from __future__ import annotations

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest

converts(ResizeCubic, ResizeLinear, ResizeNearest)(decomposed)
