"""Functions that avoid what IREE computes wrong, in place of those that name one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from crosschip.devices.kits.stablehlo.converters import converters
from crosschip.devices.kits.stablehlo.converters.arithmetic import pow_
from crosschip.devices.kits.stablehlo.converters.conversion import cast
from crosschip.devices.kits.stablehlo.converters.convolution import conv, conv_transpose
from crosschip.devices.kits.stablehlo.converters.table import complete
from crosschip.devices.kits.stablehlo.graph import ChannelsLast, Graph, Value, View
from crosschip.ir import Builder, Operand
from crosschip.ir.types import ALL_TYPES, FLOATS, INTEGERS
from crosschip.ops.standard.arithmetic import Pow
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import (
    Conv,
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
    ConvTranspose,
)
from crosschip.ops.standard.joining import Concat, Split

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


def grouped_conv(g: Graph, op: Conv) -> ChannelsLast:
    """Compute each group of a dilated convolution by itself (quirk `dilation-by-zeros`)."""
    return _by_group(g, op) if _is_dilated_by_zeros(op) else conv(g, op)


def grouped_conv_transpose(g: Graph, op: ConvTranspose) -> ChannelsLast | Sequence[Value]:
    """Compute each group of a dilated transpose by itself (quirk `dilation-by-zeros`)."""
    return _by_group(g, op) if _is_dilated_by_zeros(op) else conv_transpose(g, op)


def _is_dilated_by_zeros(op: Conv | ConvTranspose) -> bool:
    """Return whether IREE dilates the filter itself, with zeros that an image may multiply."""
    image = op.input.type
    is_depthwise = image.shape is not None and op.group == image.shape[1]
    is_grouped = op.group > 1 and not is_depthwise
    return is_grouped and any(d > 1 for d in op.dilations) and image.element_type in FLOATS


def _by_group(g: Graph, op: Conv | ConvTranspose) -> ChannelsLast:
    """Split the operands of a convolution, and join the results of the groups."""
    b = Builder(prefix=f"{op.name}.")
    operands = {"input": (op.input, 1), "filter": (op.filter, 0)}
    if op.bias is not None:
        operands["bias"] = (op.bias, 0)
    parts = {slot: _split(b, *place, op.group) for slot, place in operands.items()}
    arguments: dict[str, Any] = {slot.name: operand for slot, operand in op.filled()} | {"group": 1}
    groups = [
        b.add(type(op), **{**arguments, **{slot: part[index] for slot, part in parts.items()}})
        for index in range(op.group)
    ]
    result = b.add(Concat, groups, axis=1)
    for part in b.operations:
        g.add(part)
    return ChannelsLast(g.last(result))


def _split(b: Builder, operand: Operand, axis: int, count: int) -> Sequence[Operand]:
    assert operand.type.static_shape is not None, "all sizes are known"
    size = operand.type.static_shape[axis] // count
    return b.add_all(Split, operand, axis, [size] * count)


CONVERTERS.converts(Pow, types=ALL_TYPES)(complete(power, pointwise=True))
CONVERTERS.converts(Cast, types=ALL_TYPES)(complete(truncating_cast, narrow=True, pointwise=True))
CONVERTERS.converts(Conv1D, Conv2D, Conv3D, types=ALL_TYPES)(complete(grouped_conv, narrow=True))
CONVERTERS.converts(Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, types=ALL_TYPES)(
    complete(grouped_conv_transpose, narrow=True)
)
