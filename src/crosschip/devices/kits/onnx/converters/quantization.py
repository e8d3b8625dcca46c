"""Quantization and dequantization."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.onnx.converters.table import NARROW_FLOATS, converts
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import Array, ElementType, Operand
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
    return g.add("QuantizeLinear", reals, *_quantization(g, like), axis=_axis(like))


def add_dequantize(g: Graph, integers: str, like: Operand) -> str:
    """Dequantize integers with the parameters of an operand; computed int32 has no zero point.

    ONNX Runtime does not compile some networks whose constant biases have none.
    """
    scale, zero_point = _quantization(g, like)
    is_computed_int32 = like.type.element_type is ElementType.INT32 and like.value is None
    parameters = [scale] if is_computed_int32 else [scale, zero_point]
    return g.add("DequantizeLinear", integers, *parameters, axis=_axis(like))


def _dequantize_int4(g: Graph, integers: Array, like: Operand) -> str:
    """Dequantize a constant of 4-bit integers."""
    quantization = like.type.quantization
    assert quantization is not None, "inference checks it"
    shape = () if quantization.axis is None else (-1,)
    scale = g.constant(np.array(quantization.scale, np.float32).reshape(shape))
    zero_point = np.array(quantization.zero_point).astype(integers.dtype).reshape(shape)
    packed = (g.int4_constant(integers), scale, g.int4_constant(zero_point))
    return g.add("DequantizeLinear", *packed, axis=quantization.axis)


def _quantization(g: Graph, operand: Operand) -> tuple[str, str]:
    """Return scale and zero point: scalars, or lists along the axis."""
    quantization = operand.type.quantization
    assert quantization is not None, "inference checks it"
    shape = () if quantization.axis is None else (-1,)
    zero_point = np.array(quantization.zero_point, operand.type.element_type.dtype)
    scale = np.array(quantization.scale, np.float32)
    return g.constant(scale.reshape(shape)), g.constant(zero_point.reshape(shape))


def _axis(operand: Operand) -> int | None:
    return operand.type.quantization.axis if operand.type.quantization else None
