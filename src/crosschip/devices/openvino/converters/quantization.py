"""Quantization and dequantization in elementary steps, so that each rounding is as defined.

Bytes between the operations of a quantized model take the form that OpenVINO fuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.openvino import instruction_sets
from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    converts,
    exact_quotient,
    mark_never_nan,
    stored,
    whole,
)
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.devices.openvino.lowering.quantization import (
    along_axis,
    ends_of,
    has_byte_form,
    quantization_of,
)
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ir.types import NARROW_TYPES, QUANTIZABLE
from crosschip.ops.standard.quantization import (
    Dequantize,
    DequantizeBlocks,
    DynamicQuantize,
    Quantize,
    Reinterpret,
)

_BYTES = {ElementType.INT8, ElementType.UINT8}
_INTEGERS = QUANTIZABLE - NARROW_TYPES
_PACKED = {ElementType.INT4: openvino.Type.i4, ElementType.UINT4: openvino.Type.u4}


@converts(Quantize, types=FLOAT_TYPES | _INTEGERS - {ElementType.INT32})
def quantize(g: Graph, op: Quantize) -> Node:
    quantized = op.outputs[0]
    element_type = quantized.type.element_type
    limits = np.iinfo(element_type.dtype)
    reals = ops.convert(g[op.input], "f32")
    if quantized in g.quantized_intermediates and has_byte_form(quantized):
        return _fake_quantize(g, quantized, reals)
    steps = exact_quotient(reals, _along(g, quantized, quantization_of(quantized).scale))
    shifted = ops.add(ops.round(steps), _along(g, quantized, quantization_of(quantized).zero_point))
    return stored(ops.clamp(shifted, limits.min, limits.max), TYPES[element_type])


def _fake_quantize(g: Graph, quantized: Operand, reals: Node) -> Node:
    """Quantize with a `FakeQuantize`, so that OpenVINO computes the operations on bytes in int8.

    A quotient nearly halfway between two integers may round to either.
    """
    element_type = quantized.type.element_type
    limits = np.iinfo(element_type.dtype)
    low, high = map(g.constant, ends_of(quantized))
    least, greatest = (g.constant(np.array(e, np.float32)) for e in (limits.min, limits.max))
    levels = limits.max - limits.min + 1
    steps = ops.fake_quantize(reals, low, high, least, greatest, levels)
    return ops.convert(steps, TYPES[element_type])


def _check_dequantize(op: Dequantize) -> Refusal | None:
    """Refuse int32 with a zero point: float32 may not hold their difference."""
    if op.input.type.element_type in _PACKED and op.input.value is None:
        return Refusal("input", "integers of 4 bits must be constant here", Rule.ELEMENT_TYPE)
    if op.input.type.element_type is ElementType.INT32 and not quantization_of(op.input).symmetric:
        return Refusal("input", "int32 with a zero point", Rule.ELEMENT_TYPE)
    return None


@converts(Dequantize, types={ElementType.FLOAT32, *_INTEGERS, *_PACKED}, limit=_check_dequantize)
def dequantize(g: Graph, op: Dequantize) -> Node:
    if op.input.value is None:
        quantized = g[op.input]
    elif (
        op.input.type.element_type in _BYTES | _PACKED.keys()
        and not instruction_sets.breaks_at_sse41()
    ):
        quantized = g.constant(op.input.value.astype(_stored_type(op.input)))
    else:
        # OpenVINO expects a plain constant as bias.
        return g.constant(op.kernel()([op.input.value])[0])
    if op.outputs[0] in g.dequantized_addends:
        quantized = ops.convert(quantized, "i32")
    steps = whole(quantized)
    if not quantization_of(op.input).symmetric:
        steps = ops.subtract(steps, _zero_points(g, op.input))
    return mark_never_nan(ops.multiply(steps, _along(g, op.input, quantization_of(op.input).scale)))


def _constant_blocks(op: DequantizeBlocks) -> Refusal | None:
    named = {"input": op.input, "scale": op.scale, "zero_point": op.zero_point}
    for slot, operand in named.items():
        if operand is not None and operand.value is None:
            return Refusal(slot, "is computed at run time, but must be constant here")
    return None


@converts(
    DequantizeBlocks,
    types={ElementType.FLOAT32, *_BYTES, *_PACKED},
    limit=_constant_blocks,
    nonempty=True,
)
def dequantize_blocks(g: Graph, op: DequantizeBlocks) -> Node:
    """Dequantize packed integers, which stay packed as OpenVINO's u4 and u8."""
    shape = op.input.type.static_shape or ()
    axis, size = op.axis % len(shape), op.block_size
    count = -(-shape[axis] // size)
    pads = [(0, count * size - shape[axis] if n == axis else 0) for n in range(len(shape))]
    split = (*shape[:axis], count, size, *shape[axis + 1 :])
    steps = ops.convert(_packed_constant(g, op.input, split, pads), "f32")
    blocks = (*shape[:axis], count, 1, *shape[axis + 1 :])
    if op.zero_point is not None:
        steps = ops.subtract(steps, ops.convert(_packed_constant(g, op.zero_point, blocks), "f32"))
    reals = ops.multiply(steps, g.reshaped(op.scale, blocks))
    padded = (*shape[:axis], count * size, *shape[axis + 1 :])
    result = ops.reshape(reals, g.int64(padded), False)
    if padded == shape:
        return result
    return ops.slice(result, *(g.int64([n]) for n in (0, shape[axis], 1, axis)))


def _packed_constant(
    g: Graph, operand: Operand, shape: Sequence[int], pads: Sequence[tuple[int, int]] | None = None
) -> Node:
    """Return constant integers in another shape, padded; integers of four bits are packed."""
    array = operand.value
    assert array is not None, "it is constant"
    if pads is not None:
        array = np.pad(array, pads)
    element_type = operand.type.element_type
    if element_type not in _PACKED:
        return g.constant(array.reshape(shape))
    return g.packed(array.view(np.uint8).reshape(shape), _PACKED[element_type])


@converts(Reinterpret, types=_INTEGERS)
def reinterpret(g: Graph, op: Reinterpret) -> Value:
    return g[op.input]


@converts(DynamicQuantize, types={ElementType.FLOAT32, ElementType.UINT8}, nonempty=True)
def dynamic_quantize(g: Graph, op: DynamicQuantize) -> list[Node]:
    steps, scale, shift = in_bytes(g, g[op.input])
    return [stored(steps, "u8"), scale, stored(shift, "u8")]


def in_bytes(g: Graph, reals: Value) -> tuple[Node, Node, Node]:
    """Quantize dynamically to uint8: return values, scale and zero point, all in float32."""
    output = reals if isinstance(reals, Output) else reals.output(0)
    axes = g.int64(range(output.get_partial_shape().rank.get_length()))
    zero, greatest = (g.constant(np.array(number, np.float32)) for number in (0, 255))
    least = ops.minimum(ops.reduce_min(reals, axes, False), zero)
    most = ops.maximum(ops.reduce_max(reals, axes, False), zero)
    step = exact_quotient(ops.subtract(most, least), greatest)
    scale = ops.select(ops.equal(step, zero), g.constant(np.array(1, np.float32)), step)
    shift = ops.round(exact_quotient(ops.subtract(zero, least), scale))
    steps = ops.add(ops.round(exact_quotient(reals, scale)), shift)
    return ops.clamp(steps, 0, 255), scale, shift


def _zero_points(g: Graph, operand: Operand) -> Node:
    """Return zero points as converted integers.

    OpenVINO would merge float32 constants with other addends, and then round the sum.

    """
    numbers = along_axis(operand, quantization_of(operand).zero_point, _stored_type(operand))
    return ops.convert(g.constant(numbers), "f32")


def _stored_type(operand: Operand) -> np.dtype[Any]:
    """Return the type in which integers are stored: int8 for four bits."""
    element_type = operand.type.element_type
    return np.dtype(np.int8) if element_type in _PACKED else element_type.dtype


def _along(g: Graph, operand: Operand, numbers: Sequence[float]) -> Node:
    """Return numbers in float32, broadcast along the quantization axis."""
    return g.constant(along_axis(operand, numbers, np.dtype(np.float32)))
