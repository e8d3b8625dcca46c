"""Comparisons."""

from __future__ import annotations

import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters.table import converts, same
from crosschip.ops.standard import comparison

converts(comparison.Equal, pointwise=True)(same(jnp.equal))
converts(comparison.NotEqual, pointwise=True)(same(jnp.not_equal))
converts(comparison.Less, pointwise=True)(same(jnp.less))
converts(comparison.LessEqual, pointwise=True)(same(jnp.less_equal))
converts(comparison.Greater, pointwise=True)(same(jnp.greater))
converts(comparison.GreaterEqual, pointwise=True)(same(jnp.greater_equal))
