"""Functions that avoid what IREE computes wrong, in place of those that name one operation."""

from __future__ import annotations

import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters import converters
from crosschip.devices.kits.stablehlo.converters.arithmetic import pow_
from crosschip.devices.kits.stablehlo.converters.conversion import cast
from crosschip.devices.kits.stablehlo.converters.table import complete
from crosschip.devices.kits.stablehlo.graph import Graph, Value, View
from crosschip.ir import Operand
from crosschip.ir.types import ALL_TYPES, INTEGERS
from crosschip.ops.standard.arithmetic import Pow
from crosschip.ops.standard.conversion import Cast

CONVERTERS = converters.for_device("iree")


def power(g: Graph, op: Pow) -> Value:
    """Compute powers of reals by the magnitude and the sign (quirk `powers-of-negatives`)."""
    base, exponent = jnp.broadcast_arrays(g[op.input0], g[op.input1])
    if not jnp.issubdtype(base.dtype, jnp.floating):
        return pow_(g, op)
    # In 64 bits, since the error of the logarithm grows with the exponent.
    a, b = base.astype(jnp.float64), exponent.astype(jnp.float64)
    magnitude = jnp.exp(b * jnp.log(jnp.abs(a)))
    magnitude = jnp.where((jnp.abs(a) == 1) & jnp.isinf(b), 1, magnitude)
    is_odd = b - 2 * jnp.floor(b / 2) == 1
    signed = jnp.where(is_odd & jnp.signbit(a), -magnitude, magnitude)
    is_undefined = (a < 0) & jnp.isfinite(a) & jnp.isfinite(b) & (jnp.floor(b) != b)
    return jnp.where((b == 0) | (a == 1), 1, jnp.where(is_undefined, jnp.nan, signed))


class _Truncated(View):
    """A view of reals rounded towards zero."""

    def __getitem__(self, operand: Operand) -> Value:
        value = self._graph[operand]
        return jnp.trunc(value) if jnp.issubdtype(value.dtype, jnp.floating) else value


def truncating_cast(g: Graph, op: Cast) -> Value:
    """Convert reals to integers after rounding them (quirk `integers-by-rounding`)."""
    return cast(_Truncated(g) if op.dtype in INTEGERS else g, op)


CONVERTERS.converts(Pow, types=ALL_TYPES)(complete(power, pointwise=True))
CONVERTERS.converts(Cast, types=ALL_TYPES)(complete(truncating_cast, narrow=True, pointwise=True))
