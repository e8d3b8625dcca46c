"""Resampling of images: gathered pixels, or products with matrices of weights."""

from __future__ import annotations

from crosschip.devices.xla.converters.table import converts, decomposed
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest

converts(ResizeCubic, ResizeLinear, ResizeNearest)(decomposed)
