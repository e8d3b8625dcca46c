"""Comparisons."""

from __future__ import annotations

import jax.numpy as jnp

from crosschip.devices.xla.converters.table import converts, same
from crosschip.ops.standard import comparison

converts(comparison.Equal)(same(jnp.equal))
converts(comparison.NotEqual)(same(jnp.not_equal))
converts(comparison.Less)(same(jnp.less))
converts(comparison.LessEqual)(same(jnp.less_equal))
converts(comparison.Greater)(same(jnp.greater))
converts(comparison.GreaterEqual)(same(jnp.greater_equal))
