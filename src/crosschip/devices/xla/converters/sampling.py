"""Picking an image's values at places between its pixels."""

from __future__ import annotations

from crosschip.devices.xla.converters.table import converts, decomposed
from crosschip.ops.standard.sampling import GridSample

converts(GridSample)(decomposed)
