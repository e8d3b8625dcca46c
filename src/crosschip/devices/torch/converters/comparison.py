"""Comparisons."""

from __future__ import annotations

import torch

from crosschip.devices.torch.converters.table import WITH_UINT64, converts, same
from crosschip.ops.standard import comparison

converts(comparison.Equal, types=WITH_UINT64, narrow=True)(same(torch.eq))
converts(comparison.NotEqual, types=WITH_UINT64, narrow=True)(same(torch.ne))
converts(comparison.Less, narrow=True)(same(torch.lt))
converts(comparison.LessEqual, narrow=True)(same(torch.le))
converts(comparison.Greater, narrow=True)(same(torch.gt))
converts(comparison.GreaterEqual, narrow=True)(same(torch.ge))
