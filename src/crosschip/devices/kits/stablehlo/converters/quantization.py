"""Quantization and dequantization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from crosschip.devices.kits.stablehlo.converters.table import converts, narrow_float
from crosschip.devices.kits.stablehlo.graph import Graph, Value
from crosschip.ir import ElementType, Operand, Quantization
from crosschip.ir.types import NARROW_FLOATS
from crosschip.ops.definition.quantized import limits
from crosschip.ops.standard.quantization import Dequantize, Quantize, Reinterpret


@converts(Quantize)
def quantize(g: Graph, op: Quantize) -> Value:
    quantized, reals = op.outputs[0], g[op.input]
    steps = reals / _along(quantized, _of(quantized).scale, reals.dtype)
    if op.dtype in NARROW_FLOATS:
        zero_point = _along(quantized, _of(quantized).zero_point, reals.dtype)
        return narrow_float(steps + zero_point, op.dtype)
    # float64 holds every int32.
    zero_point = _along(quantized, _of(quantized).zero_point, np.float64)
    return jnp.clip(jnp.round(steps).astype(jnp.float64) + zero_point, *limits(op.dtype))


@converts(Dequantize)
def dequantize(g: Graph, op: Dequantize) -> Value:
    # In float32, 16-bit integers times a scale are rounded only once.
    wide = np.float64 if op.input.type.element_type is ElementType.INT32 else np.float32
    steps = g[op.input].astype(wide) - _along(op.input, _of(op.input).zero_point, wide)
    return steps * _along(op.input, _of(op.input).scale, wide)


@converts(Reinterpret)
def reinterpret(g: Graph, op: Reinterpret) -> Value:
    return g[op.input]


def _of(operand: Operand) -> Quantization:
    assert operand.type.quantization is not None, "inference has seen to it"
    return operand.type.quantization


def _along(operand: Operand, numbers: Sequence[float], dtype: Any) -> Value:
    """Return numbers, shaped to broadcast along the quantization axis of an operand."""
    axis = _of(operand).axis
    if axis is None:
        return np.array(
            np.float32(numbers[0]) if isinstance(numbers[0], float) else numbers[0], dtype
        )
    rank = len(operand.type.static_shape or ())
    return np.array(numbers, dtype).reshape((-1,) + (1,) * (rank - 1 - axis % rank))
