"""Tiling, rolling and reversal."""

from __future__ import annotations

from collections.abc import Sequence

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import MOVABLE, check_uint32, converts, rank_of
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import Dim, ElementType
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile

_LONG = {ElementType.INT32, ElementType.UINT32, ElementType.INT64}


def _check_tile(op: Tile) -> Refusal | None:
    repeats, is_known = _repeats(op)
    if computed := check_uint32(op):
        return computed
    several = repeats is None or sum(count != 1 for count in repeats) > 1
    # Quirk `computed-repeats`.
    if repeats is None or (several and not is_known):
        return Refusal("repeats", "is computed, and may repeat along several axes", Rule.COMPUTED)
    # Quirk `repeats-beside-one`.
    has_one = len(repeats) > rank_of(op.input) or 1 in (op.input.type.shape or ())
    if op.input.type.static_shape is None and has_one and several:
        return Refusal("repeats", "several, beside an axis of 1 and open sizes", Rule.SHAPE)
    return None


def _repeats(op: Tile) -> tuple[Sequence[Dim] | None, bool]:
    """Return the repeats, as far as they follow from sizes, and whether they are constant."""
    operand = op.operand("repeats")
    assert operand is not None, "never left out"
    return (op.repeats, True) if operand.is_constant else (operand.type.shape_value, False)


@converts(Tile, types=MOVABLE, computed=["repeats"], limit=_check_tile)
def tile(g: Graph, op: Tile) -> Value:
    operand = op.operand("repeats")
    repeats, is_known = _repeats(op)
    assert repeats is not None, "supports() asks for repeats that follow from sizes"
    added_axes = len(repeats) - rank_of(op.input)
    input = (
        ops.unsqueeze(g[op.input], g.int64(range(added_axes))) if added_axes > 0 else g[op.input]
    )
    requested = g.indices(operand)
    rule = "repeats: has a negative number"
    assert operand is not None, "it is never left out"
    if not is_known and not g.require_natural(op, rule, operand):
        g.require(op, rule, ops.greater_equal(requested, g.scalar(0)))
    requested = (
        ops.concat([g.int64([1] * -added_axes), requested], 0) if added_axes < 0 else requested
    )
    result = ops.tile(input, requested)
    if is_known or op.input.type.static_shape is not None:
        return result
    # Quirk `repeats-of-nothing`.
    shape = ops.multiply(ops.shape_of(input, "i64"), ops.convert(requested, "i64"))
    return ops.reshape(result, shape, False)


def _check_roll(op: Roll) -> Refusal | None:
    return Refusal("axes", "must be given") if op.axes is None else check_uint32(op)


@converts(Roll, types=MOVABLE, limit=_check_roll)
def roll(g: Graph, op: Roll) -> Value:
    return ops.roll(g[op.input], g.int64(op.shifts), g.int64(op.axes or ()))


def _check_reverse(op: ReverseSequence) -> Refusal | None:
    is_long = op.input.type.element_type in _LONG
    return Refusal("input", "long integers are reversed as float32") if is_long else None


@converts(ReverseSequence, types=MOVABLE, limit=_check_reverse)
def reverse_sequence(g: Graph, op: ReverseSequence) -> Node:
    batch, time = (axis % rank_of(op.input) for axis in (op.batch_axis, op.time_axis))
    lengths = g[op.lengths]
    size = ops.convert(g.size(op.input, time), lengths.get_element_type())
    zero = ops.convert(g.scalar(0), lengths.get_element_type())
    inside = ops.maximum(ops.minimum(lengths, size), zero)
    g.require(op, "lengths: one does not fit in time_axis", ops.equal(lengths, inside))
    return ops.reverse_sequence(g[op.input], inside, batch, time)
