"""Boxes of object detectors."""

from __future__ import annotations

from crosschip.devices.xla.converters.table import converts, decomposed
from crosschip.ops.standard.detection import PriorBox, YoloBox

converts(PriorBox, YoloBox)(decomposed)
