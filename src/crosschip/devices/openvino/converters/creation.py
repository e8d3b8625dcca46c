"""Tensors computed from a shape, a range or indices."""

from __future__ import annotations

import math

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    EXACT,
    MOVABLE,
    SINGLE,
    check_empty,
    check_uint32,
    converts,
)
from crosschip.devices.openvino.graph import TYPES, Graph
from crosschip.devices.openvino.requirements import INT32
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard import creation
from crosschip.ops.standard.creation import OneHot, Range


@converts(creation.Fill, types=MOVABLE, computed=["shape"], limit=check_empty)
def fill(g: Graph, op: creation.Fill) -> Node:
    return ops.broadcast(g.reshaped(op.value, []), g.indices(op.operand("shape")))


@converts(creation.ShapeOf, types=MOVABLE | {ElementType.FLOAT64, ElementType.UINT64})
def shape_of(g: Graph, op: creation.ShapeOf) -> Node:
    return ops.convert(ops.shape_of(g[op.input]), TYPES[op.dtype])


_POWER, _LEAST = 0.5, 2.0**-20
"""The mantissa of a power of 2; the smallest step of a range of floats."""
_MOST_FLOATS = 2.0**29
"""The maximum number of steps from 0 to the end of a range of floats, counted in int32."""
_COUNTED = 29
"""The bits of the bounds of a range: their distance plus one step must fit in int32."""


def _check_range(op: Range) -> Refusal | None:
    """Refuse ranges of floats unless the step is a power of 2 and the start a multiple of it."""
    if op.start.type.element_type is not ElementType.FLOAT32:
        return None
    if op.start.value is None or op.step.value is None:
        return Refusal("step", "must be constant, and start, where they are floats")
    start, step = op.start.value.item(), op.step.value.item()
    if abs(math.frexp(step)[0]) != _POWER or not _LEAST <= abs(step) <= 1 / _LEAST:
        return Refusal("step", f"{step} is no power of 2, so float32 does not count exactly")
    if not (start / step).is_integer() or abs(start / step) > 2**EXACT:
        return Refusal("start", f"{start} is no multiple of the step that float32 counts from")
    return None


@converts(Range, types=INDICES | SINGLE, bits=_COUNTED, limit=_check_range)
def range_(g: Graph, op: Range) -> Node:
    if op.start.type.element_type is ElementType.FLOAT32:
        return _range_of_floats(g, op)
    start, end, step = (g.reshaped(o, []) for o in (op.start, op.end, op.step))
    zero = ops.convert(g.scalar(0), step.get_element_type())
    is_forward = op.step.value is not None and op.step.value.item() > 0
    if op.step.value is None:
        # Quirk `range-without-step`.
        g.require(op, "step: is 0", ops.not_equal(step, zero))
        one = ops.convert(g.scalar(1), step.get_element_type())
        step = ops.select(ops.equal(step, zero), one, step)
    # Quirk `range-on-the-other-side`.
    last = ops.maximum(start, end)
    end = last if is_forward else ops.select(ops.greater(step, zero), last, ops.minimum(start, end))
    return ops.range(start, end, step, TYPES[op.outputs[0].type.element_type].to_string())


def _range_of_floats(g: Graph, op: Range) -> Node:
    """Compute a range of floats, whose step is a power of 2, as integers times the step."""
    assert op.start.value is not None, "the limit says so"
    assert op.step.value is not None, "the limit says so"
    step = op.step.value.item()
    start = np.array(op.start.value.item() / step, np.int32)
    # Runs whose end is NaN, infinite or too far away are refused.
    ends = ops.multiply(g.reshaped(op.end, []), g.constant(np.array(1 / step, np.float32)))
    is_countable = ops.less_equal(ops.abs(ends), g.constant(np.array(_MOST_FLOATS, np.float32)))
    g.require(op, f"end: is more than {_MOST_FLOATS:g} steps away, or no number", is_countable)
    # The definition rounds the distance to float64: an end this close to 0 counts as 0.
    tolerance = g.constant(np.array(np.spacing(abs(np.float64(start))) / 2, np.float32))
    zero, first = g.constant(np.array(0, np.float32)), g.constant(start.astype(np.float32))
    ends = ops.select(ops.less_equal(ops.abs(ends), tolerance), zero, ends)
    last = ops.convert(ops.ceiling(ops.select(is_countable, ends, first)), "i32")
    one = g.constant(np.array(1, np.int32))
    steps = ops.range(g.constant(start), ops.maximum(last, g.constant(start)), one, "i32")
    return ops.multiply(ops.convert(steps, "f32"), g.constant(np.array(step, np.float32)))


def _check_one_hot(op: OneHot) -> Refusal | None:
    if op.indices.type.element_type is ElementType.UINT32:
        return Refusal("indices", "uint32 is taken for int32", Rule.ELEMENT_TYPE)
    if op.on_value.type.element_type is ElementType.UINT32:
        return Refusal("on_value", "uint32 from 2 ** 31 on becomes less", Rule.ELEMENT_TYPE)
    depth = op.operand("depth")
    if depth is not None and depth.value is not None and not 0 <= op.depth <= INT32[1]:
        return Refusal("depth", str(op.depth))
    if depth is not None and depth.value is None and op.indices.type.shape == ():
        return Refusal("indices", "is one number, and depth is computed")
    return check_uint32(op)


@converts(OneHot, types=MOVABLE, computed=["depth"], limit=_check_one_hot)
def one_hot(g: Graph, op: OneHot) -> Node:
    # The conversion saturates: an index out of range stays out of range.
    indices, depth = ops.convert(g[op.indices], "i32"), op.operand("depth")
    size = ops.convert(ops.squeeze(g.indices(depth), g.int64([0])), "i32")
    zero = g.constant(np.array(0, np.int32))
    from_end = ops.select(ops.less(indices, zero), ops.add(indices, size), indices)
    values = (g.reshaped(value, []) for value in (op.on_value, op.off_value))
    return ops.one_hot(from_end, size, *values, op.axis)
