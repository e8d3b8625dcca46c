"""Operators that move elements about: layout, joining, picking, filling, element types."""

from __future__ import annotations

from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.devices.limits import along_nothing, backward_start
from crosschip.devices.openvino.converters.indexing import out_of_range
from crosschip.devices.openvino.converters.table import (
    FLOAT_TYPES,
    MOVABLE,
    converts,
    rank_of,
    sizes_only,
)
from crosschip.devices.openvino.graph import TYPES, Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType
from crosschip.ops.definition.operator import Operator
from crosschip.ops.standard import conversion, creation, indexing, joining, layout, slicing


def _known_empty(op: Operator) -> Refusal | None:
    """OpenVINO crashes, or makes something of nothing, where it knows as it compiles."""
    tensors = [operand for slot, operand in op.filled() if not slot.parameter]
    is_empty = any(0 in (operand.type.shape or ()) for operand in (*tensors, *op.outputs))
    return Refusal("input", "is empty, or the output is") if is_empty else None


def _filled(op: Operator) -> Refusal | None:
    return _known_empty(op) or sizes_only(op)


def _narrow(op: conversion.Cast) -> Refusal | None:
    own = op.input.type.element_type
    if op.dtype is ElementType.INT64 and own in FLOAT_TYPES:
        return Refusal("dtype", "int64 is computed in int32", Rule.COMPUTED)
    if op.dtype is ElementType.BOOL and own is ElementType.UINT32:
        return Refusal("input", "uint32 is false from 2 ** 31 on")
    return sizes_only(op)


@converts(conversion.Cast, types=MOVABLE, limit=_narrow)
def cast(g: Graph, op: conversion.Cast) -> Node:
    return ops.convert(g[op.input], TYPES[op.dtype])


@converts(creation.Fill, types=MOVABLE, computed=["shape"], limit=_filled)
def fill(g: Graph, op: creation.Fill) -> Node:
    return ops.broadcast(g.reshaped(op.value, []), g.indices(op.operand("shape")))


@converts(joining.Concat, types=MOVABLE, limit=sizes_only)
def concat(g: Graph, op: joining.Concat) -> Node:
    return ops.concat([g[part] for part in op.parts], op.axis)


@converts(joining.Split, types=MOVABLE, computed=["split"], limit=sizes_only)
def split(g: Graph, op: joining.Split) -> list[Output]:
    operand = op.operand("split")
    sizes = g.indices(operand)
    if operand is not None and operand.value is None:
        some = ops.maximum(sizes, g.scalar(0))
        g.require(op, "split: a size is negative", ops.equal(sizes, some))
        sizes = some
    pieces: list[Output] = ops.variadic_split(g[op.input], g.scalar(op.axis), sizes).outputs()
    return pieces


def _picked(op: indexing.Gather) -> Refusal | None:
    known = _known_empty(op) or out_of_range(op.indices, op.input, [op.axis])
    return known or sizes_only(op, but="indices")


@converts(indexing.Gather, types=MOVABLE, limit=_picked)
def gather(g: Graph, op: indexing.Gather) -> Node:
    indices = g.within(op, op.indices, op.input, [op.axis])
    return ops.gather(g[op.input], indices, g.scalar(op.axis))


@converts(layout.Reshape, types=MOVABLE, computed=["shape"], limit=sizes_only)
def reshape(g: Graph, op: layout.Reshape) -> Node:
    shape = g.indices(op.operand("shape"))
    if op.outputs[0].type.shape == ():
        # Of a product of two vectors, taken by `reshape` to no axes, OpenVINO crashes.
        return ops.squeeze(ops.reshape(g[op.input], g.int64([1]), False), g.scalar(0))
    if op.input.type.shape == () and op.outputs[0].type.static_shape is None:
        # Of a tensor without axes, OpenVINO does not count the elements.
        total = ops.reduce_prod(ops.abs(shape), g.int64([0]), False)
        g.require(op, "shape: is not of one element", ops.equal(total, g.scalar(1)))
    elif rank_of(op.outputs[0]) == 1:
        # OpenVINO makes one axis of all elements, whatever size is asked for.
        total = ops.reduce_prod(ops.convert(g.sizes(op.input, 0), "i64"), g.int64([0]), True)
        asked = ops.select(ops.equal(shape, g.scalar(0)), g.size(op.input, 0), shape)
        holds = ops.logical_or(ops.equal(asked, total), ops.equal(shape, g.scalar(-1)))
        g.require(op, "shape: does not hold the input's elements", holds)
    return ops.reshape(g[op.input], shape, True)


@converts(layout.Transpose, types=MOVABLE, limit=sizes_only)
def transpose(g: Graph, op: layout.Transpose) -> Node:
    rank = len(op.perm)
    return ops.transpose(g[op.input], g.int64(axis % rank for axis in op.perm))


@converts(layout.Squeeze, types=MOVABLE, limit=sizes_only)
def squeeze(g: Graph, op: layout.Squeeze) -> Node:
    return ops.squeeze(g[op.input], g.int64(op.axes) if op.axes else None)


@converts(layout.Unsqueeze, types=MOVABLE, limit=sizes_only)
def unsqueeze(g: Graph, op: layout.Unsqueeze) -> Value:
    if not op.axes:
        return g[op.input]
    return ops.unsqueeze(g[op.input], g.int64(op.axes))


@converts(layout.Flatten, types=MOVABLE, limit=_filled)
def flatten(g: Graph, op: layout.Flatten) -> Node:
    known = [size if isinstance(size, int) else -1 for size in op.outputs[0].type.shape or ()]
    if known.count(-1) < 2:
        return ops.reshape(g[op.input], g.int64(known), False)
    rank = max(1, rank_of(op.input))
    start, end = op.start_axis % rank, op.end_axis % rank + 1
    sizes, one = ops.convert(ops.shape_of(g[op.input]), "i64"), g.int64([1])
    before, between, after = (
        ops.slice(sizes, g.int64([first]), g.int64([last]), one)
        for first, last in ((0, start), (start, end), (end, rank))
    )
    merged = ops.reduce_prod(between, g.int64([0]), True)
    return ops.reshape(g[op.input], ops.concat([before, merged, after], 0), False)


@converts(layout.Expand, types=MOVABLE, computed=["shape"], limit=_filled)
def expand(g: Graph, op: layout.Expand) -> Value:
    if op.outputs[0].type.shape == () or along_nothing(op.operand("shape")):
        # To no axes, OpenVINO crashes.
        return g[op.input]
    # The absolute value turns -1, which keeps a size, into 1, which OpenVINO has for that.
    shape = ops.abs(g.indices(op.operand("shape")))
    return ops.broadcast(g[op.input], shape, broadcast_spec="bidirectional")


@converts(creation.ShapeOf, types=MOVABLE | {ElementType.FLOAT64, ElementType.UINT64})
def shape_of(g: Graph, op: creation.ShapeOf) -> Node:
    return ops.convert(ops.shape_of(g[op.input]), TYPES[op.dtype])


def _sliced(op: slicing.Slice) -> Refusal | None:
    return backward_start(op) or sizes_only(op)


@converts(slicing.Slice, types=MOVABLE, computed=["starts", "ends"], limit=_sliced)
def slice_(g: Graph, op: slicing.Slice) -> Value:
    if along_nothing(op.operand("starts")):
        return g[op.input]
    starts, ends = g.indices(op.operand("starts")), g.indices(op.operand("ends"))
    steps = op.operand("steps")
    steps = g.indices(steps) if steps else ops.broadcast(g.scalar(1), ops.shape_of(starts))
    axes = None if op.axes is None else g.int64(op.axes)
    return ops.slice(g[op.input], starts, ends, steps, axes)
