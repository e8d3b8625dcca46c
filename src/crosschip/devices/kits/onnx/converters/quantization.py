"""Quantization and dequantization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.devices.kits.onnx.converters.table import NARROW_FLOATS, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import Array, ElementType, Operand, Quantization
from crosschip.ir.types import NARROW_TYPES, QUANTIZABLE
from crosschip.ops.standard.quantization import (
    Dequantize,
    DequantizeBlocks,
    DynamicQuantize,
    Quantize,
    Reinterpret,
)

_INTEGERS = QUANTIZABLE - NARROW_TYPES
_INT4_TYPES = {ElementType.INT4, ElementType.UINT4}


@converts(Quantize, types=NARROW_FLOATS | _INTEGERS - {ElementType.INT32})
def quantize(g: Graph, op: Quantize) -> str:
    return add_quantize(g, g.cast(g[op.input], np.float32), op.outputs[0])


def _dequantize_limit(op: Dequantize) -> Refusal | None:
    if op.input.type.element_type in _INT4_TYPES and op.input.value is None:
        return Refusal("input", "integers of 4 bits must be constant here", Rule.ELEMENT_TYPE)
    quantization = op.input.type.quantization
    symmetric = quantization is not None and quantization.symmetric
    if op.input.type.element_type is ElementType.INT32 and not symmetric:
        return Refusal("input", "int32 with a zero point", Rule.ELEMENT_TYPE)
    return None


@converts(
    Dequantize, types={ElementType.FLOAT32} | _INTEGERS | _INT4_TYPES, limit=_dequantize_limit
)
def dequantize(g: Graph, op: Dequantize) -> str:
    if op.input.value is not None and op.input.type.element_type in _INT4_TYPES:
        return _dequantize_int4(g, op.input.value, op.input)
    return add_dequantize(g, g[op.input], op.input)


@converts(Reinterpret, types=_INTEGERS)
def reinterpret(g: Graph, op: Reinterpret) -> str:
    return g[op.input]


def _dequantize_blocks_limit(op: DequantizeBlocks) -> Refusal | None:
    """Refuse 4-bit integers that are not constant: only constants can be packed."""
    for slot, operand in op.named_inputs():
        if operand.type.element_type in _INT4_TYPES and operand.value is None:
            return Refusal(slot, "integers of 4 bits must be constant here", Rule.ELEMENT_TYPE)
    if op.input.type.element_type is ElementType.INT32 and op.zero_point is not None:
        return Refusal("input", "int32 with a zero point", Rule.ELEMENT_TYPE)
    if op.scale.type.shape == (1,):
        return Refusal("scale", "ONNX Runtime takes a list of one for that of the whole")
    return None


@converts(DynamicQuantize, types={ElementType.FLOAT32, ElementType.UINT8}, nonempty=True)
def dynamic_quantize(g: Graph, op: DynamicQuantize) -> list[str]:
    return g.add_all("DynamicQuantizeLinear", 3, g[op.input])


@converts(
    DequantizeBlocks,
    types=_INTEGERS | {*_INT4_TYPES, ElementType.FLOAT16, ElementType.FLOAT32},
    limit=_dequantize_blocks_limit,
    nonempty=True,
)
def dequantize_blocks(g: Graph, op: DequantizeBlocks) -> str:
    filled = (o for o in (op.input, op.scale, op.zero_point) if o is not None)
    names = (
        g.int4_constant(o.value)
        if o.value is not None and o.type.element_type in _INT4_TYPES
        else g[o]
        for o in filled
    )
    return g.add("DequantizeLinear", *names, axis=op.axis, block_size=op.block_size)


def add_quantize(g: Graph, reals: str, like: Operand) -> str:
    """Quantize reals with the parameters of an operand."""
    parameters = _scale(g, like), _zero_point(g, like)
    return g.add("QuantizeLinear", reals, *parameters, axis=_axis(like))


def add_dequantize(g: Graph, integers: str, like: Operand) -> str:
    """Dequantize integers with the parameters of an operand; int32 has no zero point."""
    parameters = [_scale(g, like)]
    if like.type.element_type is not ElementType.INT32:
        parameters.append(_zero_point(g, like))
    return g.add("DequantizeLinear", integers, *parameters, axis=_axis(like))


def _dequantize_int4(g: Graph, integers: Array, like: Operand) -> str:
    """Dequantize a constant of 4-bit integers."""
    zero_point = _per_axis(like, _quantization(like).zero_point, integers.dtype)
    packed = (g.int4_constant(integers), _scale(g, like), g.int4_constant(zero_point))
    return g.add("DequantizeLinear", *packed, axis=_axis(like))


def _scale(g: Graph, operand: Operand) -> str:
    return g.constant(_per_axis(operand, _quantization(operand).scale, np.dtype(np.float32)))


def _zero_point(g: Graph, operand: Operand) -> str:
    dtype = operand.type.element_type.dtype
    return g.constant(_per_axis(operand, _quantization(operand).zero_point, dtype))


def _per_axis(operand: Operand, values: Sequence[float], dtype: np.dtype[Any]) -> Array:
    """Return parameters of a quantization: a scalar, or a list along the axis."""
    return np.array(values, dtype).reshape(() if _axis(operand) is None else (-1,))


def _quantization(operand: Operand) -> Quantization:
    quantization = operand.type.quantization
    assert quantization is not None, "inference checks it"
    return quantization


def _axis(operand: Operand) -> int | None:
    return operand.type.quantization.axis if operand.type.quantization else None
