"""Tensors made from a description."""

from __future__ import annotations

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import (
    MOVABLE,
    converts,
    near,
    never_empty,
)
from crosschip.devices.openvino.graph import TYPES, Graph
from crosschip.devices.openvino.requirements import INT32
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ir.types import INDICES
from crosschip.ops.standard import creation
from crosschip.ops.standard.creation import OneHot, Range


@converts(creation.Fill, types=MOVABLE, computed=["shape"], limit=never_empty)
def fill(g: Graph, op: creation.Fill) -> Node:
    value = g.reshaped(op.value, [])
    if op.outputs[0].type.shape == ():
        return value  # to no axes, OpenVINO crashes
    return ops.broadcast(value, g.indices(op.operand("shape")))


@converts(creation.ShapeOf, types=MOVABLE | {ElementType.FLOAT64, ElementType.UINT64})
def shape_of(g: Graph, op: creation.ShapeOf) -> Node:
    return ops.convert(ops.shape_of(g[op.input]), TYPES[op.dtype])


_COUNTED = 29
"""The bits of the bounds of a range: their distance and a step more is computed in 32."""


@converts(Range, types=INDICES, bits=_COUNTED)
def range_(g: Graph, op: Range) -> Node:
    start, end, step = (g.reshaped(o, []) for o in (op.start, op.end, op.step))
    zero = ops.convert(g.scalar(0), step.get_element_type())
    is_forward = op.step.value is not None and op.step.value.item() > 0
    if op.step.value is None:
        # OpenVINO divides by it.
        g.require(op, "step: is 0", ops.not_equal(step, zero))
        one = ops.convert(g.scalar(1), step.get_element_type())
        step = ops.select(ops.equal(step, zero), one, step)
    # An end on the other side of the start would be taken for one as far away on this side.
    after = ops.maximum(start, end)
    end = (
        after if is_forward else ops.select(ops.greater(step, zero), after, ops.minimum(start, end))
    )
    return ops.range(start, end, step, TYPES[op.outputs[0].type.element_type].to_string())


def _hot(op: OneHot) -> Refusal | None:
    if op.indices.type.element_type is ElementType.UINT32:
        return Refusal("indices", "uint32 is taken for int32", Rule.ELEMENT_TYPE)
    if op.on_value.type.element_type is ElementType.UINT32:
        return Refusal("on_value", "uint32 from 2 ** 31 on becomes less", Rule.ELEMENT_TYPE)
    depth = op.operand("depth")
    if depth is not None and depth.value is not None and not 0 <= op.depth <= INT32[1]:
        return Refusal("depth", str(op.depth))
    if depth is not None and depth.value is None and op.indices.type.shape == ():
        return Refusal("indices", "is one number, and depth is computed")
    return near(op)


@converts(OneHot, types=MOVABLE, computed=["depth"], limit=_hot)
def one_hot(g: Graph, op: OneHot) -> Node:
    indices, depth = ops.convert(g[op.indices], "i32"), op.operand("depth")
    size = ops.convert(ops.squeeze(g.indices(depth), g.int64([0])), "i32")
    zero = g.constant(np.array(0, np.int32))
    from_end = ops.select(ops.less(indices, zero), ops.add(indices, size), indices)
    values = (g.reshaped(value, []) for value in (op.on_value, op.off_value))
    return ops.one_hot(from_end, size, *values, op.axis)
