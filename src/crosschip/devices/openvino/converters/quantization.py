"""To and from quantized integers, step by step, so that every rounding is as defined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    converts,
    exact_quotient,
    rank_of,
)
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand, Quantization
from crosschip.ir.types import NARROW_TYPES, QUANTIZABLE
from crosschip.ops.standard.quantization import Dequantize, Quantize, Reinterpret

_INTEGERS = QUANTIZABLE - NARROW_TYPES


@converts(Quantize, types=FLOAT_TYPES | _INTEGERS - {ElementType.INT32})
def quantize(g: Graph, op: Quantize) -> Node:
    quantized = op.outputs[0]
    element_type = quantized.type.element_type
    limits = np.iinfo(element_type.dtype)
    reals = ops.convert(g[op.input], "f32")
    steps = exact_quotient(reals, _along(g, quantized, _of(quantized).scale))
    shifted = ops.add(ops.round(steps), _along(g, quantized, _of(quantized).zero_point))
    return ops.convert(ops.clamp(shifted, limits.min, limits.max), TYPES[element_type])


def _exact(op: Dequantize) -> Refusal | None:
    """An int32 minus its zero point may have more digits than a float32."""
    if op.input.type.element_type is ElementType.INT32 and not _of(op.input).symmetric:
        return Refusal("input", "int32 with a zero point", Rule.ELEMENT_TYPE)
    return None


@converts(Dequantize, types={ElementType.FLOAT32} | _INTEGERS, limit=_exact)
def dequantize(g: Graph, op: Dequantize) -> Node:
    if op.input.value is not None:
        # OpenVINO finds what to fuse where filters are plain constants.
        return g.constant(op.kernel()([op.input.value])[0])
    steps = ops.convert(g[op.input], "f32")
    if not _of(op.input).symmetric:
        steps = ops.subtract(steps, _along(g, op.input, _of(op.input).zero_point))
    return ops.multiply(steps, _along(g, op.input, _of(op.input).scale))


@converts(Reinterpret, types=_INTEGERS)
def reinterpret(g: Graph, op: Reinterpret) -> Value:
    return g[op.input]


def _of(operand: Operand) -> Quantization:
    assert operand.type.quantization is not None, "inference has seen to it"
    return operand.type.quantization


def _along(g: Graph, operand: Operand, numbers: Sequence[float]) -> Node:
    """The numbers in float32, laid along the axis of a quantized operand."""
    axis = _of(operand).axis
    if axis is None:
        return g.constant(np.array(numbers[0], np.float32))
    rank = rank_of(operand)
    shape = (-1,) + (1,) * (rank - 1 - axis % rank)
    return g.constant(np.array(numbers, np.float32).reshape(shape))
