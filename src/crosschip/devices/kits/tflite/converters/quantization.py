"""Quantization and dequantization."""

from __future__ import annotations

from crosschip.devices.kits.tflite.converters.table import BYTES, SINGLE, converts, rank_of
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.hal.converters import Scheme
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.quantization import Dequantize, Quantize, Reinterpret

_INTEGERS = frozenset({ElementType.INT8, ElementType.UINT8, ElementType.INT16})
_STORED = _INTEGERS | {ElementType.INT32}
_PER_TENSOR = Scheme(_INTEGERS)


def _quantize_limit(op: Quantize) -> Refusal | None:
    quantization = op.outputs[0].type.quantization
    if quantization is None or quantization.axis is not None:
        return Refusal("axis", "there must be one scale", Rule.QUANTIZATION)
    if op.outputs[0].type.element_type is ElementType.INT16 and not quantization.symmetric:
        return Refusal("zero_point", "of int16 must be 0", Rule.QUANTIZATION)
    return None


@converts(
    Quantize,
    types=SINGLE,
    output_types=_INTEGERS,
    limit=_quantize_limit,
    quantized=[{"input": _PER_TENSOR, "output": _PER_TENSOR}],
)
def quantize(g: Graph, op: Quantize) -> Operand:
    return g.native("QUANTIZE", op.input, type=op.outputs[0].type)


@converts(Reinterpret, types=_STORED)
def reinterpret(g: Graph, op: Reinterpret) -> Operand:
    # Of a tensor that is reshaped the kernel moves the integers alone.
    return g.add_reshape(op.input, op.outputs[0].type)


def _dequantize_limit(op: Dequantize) -> Refusal | None:
    quantization = op.input.type.quantization
    if quantization is None:
        return Refusal("input", "is not quantized", Rule.QUANTIZATION)
    if op.input.is_constant and op.input.type.element_type not in BYTES:
        return None  # the pass `RealConstants` replaces it
    if op.input.type.element_type is ElementType.INT32:
        return Refusal("input", "of int32 must be constant", Rule.QUANTIZATION)
    if op.input.type.element_type is ElementType.INT16 and not quantization.symmetric:
        return Refusal("input", "of int16 must have a zero point of 0", Rule.QUANTIZATION)
    if quantization.axis is not None and rank_of(op.input) > 4:
        return Refusal("input", f"has {rank_of(op.input)} axes", Rule.SHAPE)
    return None


@converts(Dequantize, types=SINGLE | _STORED, limit=_dequantize_limit)
def dequantize(g: Graph, op: Dequantize) -> Operand:
    return g.native("DEQUANTIZE", op.input, type=op.outputs[0].type)
