"""Reshapes, transpositions and broadcasts."""

from __future__ import annotations

from itertools import zip_longest

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.conditions import equal
from crosschip.devices.openvino.converters.table import (
    MOVABLE,
    accepts,
    check_empty,
    check_uint32,
    converts,
    rank_of,
)
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.devices.openvino.sizes import is_size, requested_shape
from crosschip.hal import Refusal, Rule
from crosschip.ir.dimension import product
from crosschip.ops.standard import layout

_ALL = "shape: does not hold the input's elements"


def _surely_flattens(g: Graph, op: layout.Reshape) -> bool:
    """Return whether the requested size is the number of elements in all runs not refused."""
    requested = requested_shape(op)
    if requested is None or requested[0] == -1:
        return requested is not None
    # A requested size of 0 would copy the input's size.
    if not op.allow_zero:
        return False
    return g.require_sizes(op, _ALL, [equal(requested[0], product(op.input.type.shape or ()))])


@converts(layout.Reshape, types=MOVABLE, computed=["shape"], limit=check_uint32)
def reshape(g: Graph, op: layout.Reshape) -> Node:
    shape = g.indices(op.operand("shape"))
    if op.outputs[0].type.shape == ():
        # Quirk `product-reshaped-to-scalar`.
        return ops.squeeze(ops.reshape(g[op.input], g.int64([1]), False), g.scalar(0))
    if op.input.type.shape == () and op.outputs[0].type.static_shape is None:
        # Quirk `scalar-of-wrong-size`.
        total = ops.reduce_prod(ops.multiply(shape, shape), g.int64([0]), False)
        g.require(op, "shape: is not of one element", ops.equal(total, g.scalar(1)))
    elif op.input.type.shape and rank_of(op.outputs[0]) == 1 and not _surely_flattens(g, op):
        # Quirk `one-axis-of-wrong-size`.
        total = ops.reduce_prod(ops.convert(g.sizes(op.input, 0), "i64"), g.int64([0]), True)
        copies_size = ops.logical_and(ops.equal(shape, g.scalar(0)), g.scalar(not op.allow_zero))
        requested = ops.select(copies_size, g.size(op.input, 0), shape)
        holds = ops.logical_or(ops.equal(requested, total), ops.equal(shape, g.scalar(-1)))
        g.require(op, _ALL, holds)
    return ops.reshape(g[op.input], shape, not op.allow_zero)


@converts(layout.Transpose, types=MOVABLE, limit=check_uint32)
def transpose(g: Graph, op: layout.Transpose) -> Node:
    rank = len(op.perm)
    return ops.transpose(g[op.input], g.int64(axis % rank for axis in op.perm))


@converts(layout.Squeeze, types=MOVABLE, limit=check_uint32)
def squeeze(g: Graph, op: layout.Squeeze) -> Value:
    return ops.squeeze(g[op.input], g.int64(op.axes) if op.axes else None)


@converts(layout.Unsqueeze, types=MOVABLE, limit=check_uint32)
def unsqueeze(g: Graph, op: layout.Unsqueeze) -> Value:
    return ops.unsqueeze(g[op.input], g.int64(op.axes))


accepts(layout.Flatten, types=MOVABLE, limit=check_empty)

_BROADCAST = "shape: does not broadcast with the input"
_MOST_COMPUTED = 16
"""The maximum length of a computed shape (quirk `computed-shape-of-many-axes`)."""


def _check_expand(op: layout.Expand) -> Refusal | None:
    shape = op.operand("shape")
    is_known = shape is None or shape.is_constant
    if not is_known and rank_of(op.outputs[0]) > _MOST_COMPUTED:
        detail = f"is computed, of more than {_MOST_COMPUTED} axes"
        return Refusal("shape", detail, Rule.COMPUTED)
    return check_empty(op)


def _surely_expands(g: Graph, op: layout.Expand) -> bool:
    """Return whether the requested shape broadcasts with the input in all runs not refused."""
    requested, shape = requested_shape(op), op.input.type.shape
    if requested is None or shape is None:
        return False
    pairs = [
        (size, input_size)
        for size, input_size in zip_longest(reversed(requested), reversed(shape), fillvalue=1)
        if size not in (1, -1) and not g.open_sizes.are_same(size, input_size)
    ]
    if not all(is_size(size) for size, _ in pairs):
        return False
    alternatives = [
        (equal(size, input_size), equal(input_size, 1), equal(size, 1))
        for size, input_size in pairs
    ]
    return g.require_sizes(op, _BROADCAST, *alternatives)


@converts(layout.Expand, types=MOVABLE, computed=["shape"], limit=_check_expand)
def expand(g: Graph, op: layout.Expand) -> Value:
    requested = shape = g.indices(op.operand("shape"))
    fits = _surely_expands(g, op)
    if not fits or -1 in (requested_shape(op) or ()):
        # A requested -1 keeps a size; OpenVINO expects 1.
        shape = ops.select(ops.less(requested, g.scalar(0)), g.scalar(1), requested)
    expanded = ops.broadcast(g[op.input], shape, broadcast_spec="bidirectional")
    if not fits:
        # Refused by name, rather than by OpenVINO's error.
        first, one = ops.negative(ops.shape_of(shape)), g.int64([1])
        result_shape = ops.slice(ops.shape_of(expanded), first, g.int64([2**31 - 1]), one)
        broadcasts = ops.logical_or(ops.equal(result_shape, shape), ops.equal(shape, one))
        g.require(op, _BROADCAST, broadcasts)
        g.require(op, "shape: has a negative size", ops.greater_equal(requested, g.scalar(-1)))
    return expanded
