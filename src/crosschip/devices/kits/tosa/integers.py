"""Integers of quantized operands."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.devices.kits.tosa.rescaling import scales
from crosschip.flatbuffer.schemas.tosa import DType
from crosschip.hal.converters import Scheme
from crosschip.ir import ElementType, Operand

BYTE_TYPES = frozenset({ElementType.INT8, ElementType.UINT8})
BYTES = Scheme(BYTE_TYPES)
"""Bytes with one scale."""


def steps(g: Graph, operand: Operand) -> Value:
    """Return integers less their zero points, as int32."""
    value = g.cast(g[operand], DType.INT32)
    (zero,) = operand.type.quantization.zero_point[:1] if operand.type.quantization else (0,)
    return g.difference(value, g.number(zero, value)) if zero else value


def scales_of(operand: Operand) -> list[Fraction]:
    """Return the scales of a quantized operand."""
    assert operand.type.quantization is not None, "the form is checked"
    return scales(operand.type.quantization)


def bytes_of(g: Graph, operand: Operand) -> tuple[Value, Value]:
    """Return bytes as int8, and their zero point."""
    value = g[operand]
    quantization = operand.type.quantization
    zero = quantization.zero_point[0] if quantization else 0
    if operand.type.element_type is ElementType.UINT8:
        value, zero = g.difference(value, g.number(128, value)), zero - 128
    return g.cast(value, DType.INT8), g.constant(np.array([zero], np.int8), DType.INT8)
