"""To and from quantized integers: step by step, so that every rounding is as defined.

Bytes between the operations of a quantized model are made as OpenVINO wants them.
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
    marked_number,
    rank_of,
    stored,
    whole,
)
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import Array, ElementType, Model, Operand, Quantization
from crosschip.ir.types import FLOATS, NARROW_TYPES, QUANTIZABLE
from crosschip.ops.definition.kinds import Broadcast, Layout
from crosschip.ops.standard.arithmetic import Add, Sub
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.quantization import (
    Dequantize,
    DequantizeBlocks,
    DynamicQuantize,
    Quantize,
    Reinterpret,
)
from crosschip.ops.standard.slicing import Slice

_BYTES = {ElementType.INT8, ElementType.UINT8}
_INTEGERS = QUANTIZABLE - NARROW_TYPES
_PACKED = {ElementType.INT4: openvino.Type.i4, ElementType.UINT4: openvino.Type.u4}
_HUGE = 2.0**64
"""A number that nothing but a mask adds."""
_MASKING = (Broadcast, Layout, Slice, Where)
"""Operators that read masks."""


@converts(Quantize, types=FLOAT_TYPES | _INTEGERS - {ElementType.INT32})
def quantize(g: Graph, op: Quantize) -> Node:
    quantized = op.outputs[0]
    element_type = quantized.type.element_type
    limits = np.iinfo(element_type.dtype)
    reals = ops.convert(g[op.input], "f32")
    ends = [_ends(quantized, end) for end in (limits.min, limits.max)]
    if (
        element_type in _BYTES
        and quantized in g.quantized_intermediates
        and np.all(np.isfinite(ends))
        and np.all(np.diff(ends, axis=0) > 0)
    ):
        return _fake(g, quantized, reals, ends, may_be_nan=op.input in g.maybe_nan)
    steps = exact_quotient(reals, _along(g, quantized, _of(quantized).scale))
    shifted = ops.add(ops.round(steps), _along(g, quantized, _of(quantized).zero_point))
    return stored(ops.clamp(shifted, limits.min, limits.max), TYPES[element_type])


def _ends(quantized: Operand, end: int) -> Array:
    """The reals that the least or the greatest integer stands for, in float32."""
    known = _of(quantized)
    with np.errstate(over="ignore"):
        steps = np.array(end - np.array(known.zero_point), np.float32)
        return steps * np.array(known.scale, np.float32)


def _fake(
    g: Graph, quantized: Operand, reals: Node, ends: Sequence[Array], *, may_be_nan: bool
) -> Node:
    """The quantization by which OpenVINO finds operations on bytes.

    Where a quotient is nearly halfway between two integers, it may be either.
    """
    element_type = quantized.type.element_type
    limits = np.iinfo(element_type.dtype)
    low, high = (_along(g, quantized, end.tolist()) for end in ends)
    if may_be_nan:
        # Of NaN, OpenVINO makes the least or the greatest, depending on whether sizes are known.
        reals = ops.select(ops.is_nan(reals), low, reals)
    least, greatest = (g.constant(np.array(e, np.float32)) for e in (limits.min, limits.max))
    levels = limits.max - limits.min + 1
    steps = ops.fake_quantize(reals, low, high, least, greatest, levels)
    return ops.convert(steps, TYPES[element_type])


def _exact(op: Dequantize) -> Refusal | None:
    """An int32 minus its zero point may have more digits than a float32."""
    if op.input.type.element_type in _PACKED and op.input.value is None:
        return Refusal("input", "integers of 4 bits must be constant here", Rule.ELEMENT_TYPE)
    if op.input.type.element_type is ElementType.INT32 and not _of(op.input).symmetric:
        return Refusal("input", "int32 with a zero point", Rule.ELEMENT_TYPE)
    return None


@converts(Dequantize, types={ElementType.FLOAT32, *_INTEGERS, *_PACKED}, limit=_exact)
def dequantize(g: Graph, op: Dequantize) -> Node:
    if op.input.value is None:
        quantized = g[op.input]
    elif (
        op.input.type.element_type in _BYTES | _PACKED.keys()
        and not instruction_sets.breaks_at_sse41()
    ):
        # OpenVINO computes on the integers.
        quantized = g.constant(op.input.value.astype(_stored_type(op.input)))
    else:
        # A bias is to be a plain constant.
        return g.constant(op.kernel()([op.input.value])[0])
    if op.outputs[0] in g.dequantized_addends:
        quantized = ops.convert(quantized, "i32")
    steps = whole(quantized)
    if not _of(op.input).symmetric:
        steps = ops.subtract(steps, _zero_points(g, op.input))
    return marked_number(ops.multiply(steps, _along(g, op.input, _of(op.input).scale)))


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
    """Integers stay as small as they are, as OpenVINO's own weights of few bits do."""
    shape = op.input.type.static_shape or ()
    axis, size = op.axis % len(shape), op.block_size
    count = -(-shape[axis] // size)
    pads = [(0, count * size - shape[axis] if n == axis else 0) for n in range(len(shape))]
    split = (*shape[:axis], count, size, *shape[axis + 1 :])
    steps = ops.convert(_small(g, op.input, split, pads), "f32")
    blocks = (*shape[:axis], count, 1, *shape[axis + 1 :])
    if op.zero_point is not None:
        steps = ops.subtract(steps, ops.convert(_small(g, op.zero_point, blocks), "f32"))
    reals = ops.multiply(steps, g.reshaped(op.scale, blocks))
    joined = (*shape[:axis], count * size, *shape[axis + 1 :])
    made = ops.reshape(reals, g.int64(joined), False)
    if joined == shape:
        return made
    return ops.slice(made, *(g.int64([n]) for n in (0, shape[axis], 1, axis)))


def _small(
    g: Graph, operand: Operand, shape: Sequence[int], pads: Sequence[tuple[int, int]] | None = None
) -> Node:
    """Constant integers in another shape, two in a byte where they have four bits."""
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
    """Bytes that stand for reals, their scale and their zero point, all of them in float32."""
    output = reals if isinstance(reals, Output) else reals.output(0)
    every = g.int64(range(output.get_partial_shape().rank.get_length()))
    zero, greatest = (g.constant(np.array(number, np.float32)) for number in (0, 255))
    low = ops.minimum(ops.reduce_min(reals, every, False), zero)
    high = ops.maximum(ops.reduce_max(reals, every, False), zero)
    step = exact_quotient(ops.subtract(high, low), greatest)
    scale = ops.select(ops.equal(step, zero), g.constant(np.array(1, np.float32)), step)
    shift = ops.round(exact_quotient(ops.subtract(zero, low), scale))
    steps = ops.add(ops.round(exact_quotient(reals, scale)), shift)
    return ops.clamp(steps, 0, 255), scale, shift


def quantized_intermediates(model: Model) -> frozenset[Operand]:
    """The quantized operands that pass between operations which read what they stand for."""
    read = {operand for operation in model.operations for operand in operation.inputs}
    found: set[Operand | None] = set()
    bare: set[Operand | None] = set(model.outputs.values())
    for operation in model.operations:
        if isinstance(operation, Dequantize):
            (bare if read.isdisjoint(operation.outputs) else found).add(operation.input)
        elif not getattr(operation, "moves", False):
            bare.update(operation.inputs)
    return frozenset(operand for operand in found - bare if operand is not None)


def dequantized_addends(model: Model) -> frozenset[Operand]:
    """The dequantized operands that are only added to other reals.

    Of bytes, OpenVINO would add the reals first, divided by the scale: too great for a float32
    where they are a mask. Of int32 it does not.
    """
    dequantized: set[Operand | None] = set()
    for operation in model.operations:
        moved = getattr(operation, "moves", False) and operation.inputs[0] in dequantized
        if moved or isinstance(operation, Dequantize):
            dequantized.update(operation.outputs)
    otherwise: set[Operand | None] = set(model.outputs.values())
    for operation in reversed(model.operations):
        if isinstance(operation, Add | Sub):
            terms = {operation.input0, operation.input1}
            if len(terms & dequantized) == 1 and not any(map(_is_bias, terms)):
                continue
        elif getattr(operation, "moves", False) and otherwise.isdisjoint(operation.outputs):
            continue
        otherwise.update(operation.inputs)
    made = {o for op in model.operations if isinstance(op, Dequantize) for o in op.outputs}
    return frozenset(made - otherwise)


def maybe_nan(model: Model) -> frozenset[Operand]:
    """The reals made of infinities in the model, such as those of masks: some may be NaN."""
    found: set[Operand | None] = set()
    if not any(isinstance(operation, Quantize) for operation in model.operations):
        return frozenset()
    for operation in model.operations:
        given = operation.inputs
        is_masked = isinstance(operation, _MASKING) and any(map(_is_mask, given))
        if isinstance(operation, Dequantize):
            is_masked = max(map(abs, _of(operation.input).scale)) >= _HUGE
        if is_masked or not found.isdisjoint(given):
            found.update(o for o in operation.outputs if o.type.element_type in FLOATS)
    return frozenset(operand for operand in found if operand is not None)


def _is_mask(operand: Operand | None) -> bool:
    """Tell of a constant of reals that it has elements which are infinite, NaN, or nearly so."""
    if operand is None or operand.type.element_type not in FLOATS:
        return False
    value = operand.value
    return value is not None and not np.all(np.abs(value) < _HUGE)


def _is_bias(operand: Operand) -> bool:
    """Tell of a constant that it is no mask."""
    value = operand.value
    return value is not None and bool(np.all(np.abs(value) < _HUGE))


def _of(operand: Operand) -> Quantization:
    assert operand.type.quantization is not None, "inference has seen to it"
    return operand.type.quantization


def _zero_points(g: Graph, operand: Operand) -> Node:
    """Zero points as integers that are converted.

    OpenVINO takes numbers in float32 there for any, to which it adds others, and then rounds them.
    """
    numbers = _laid(operand, _of(operand).zero_point, _stored_type(operand))
    return ops.convert(g.constant(numbers), "f32")


def _stored_type(operand: Operand) -> np.dtype[Any]:
    """The type that integers are kept in: those of four bits in bytes."""
    element_type = operand.type.element_type
    return np.dtype(np.int8) if element_type in _PACKED else element_type.dtype


def _along(g: Graph, operand: Operand, numbers: Sequence[float]) -> Node:
    """The numbers in float32, laid along the axis of a quantized operand."""
    return g.constant(_laid(operand, numbers, np.dtype(np.float32)))


def _laid(operand: Operand, numbers: Sequence[float], dtype: np.dtype[Any]) -> Array:
    axis = _of(operand).axis
    if axis is None:
        return np.array(numbers[0], dtype)
    rank = rank_of(operand)
    return np.array(numbers, dtype).reshape((-1,) + (1,) * (rank - 1 - axis % rank))
