"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import one_type
from crosschip.devices.openvino.converters.table import FLOAT_TYPES, converts, rank_of
from crosschip.devices.openvino.graph import Graph, Value
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    RMSNormalization,
)


@converts(BatchNormalization, limit=one_type, nonempty=True)
def batch_normalization(g: Graph, op: BatchNormalization) -> Node:
    statistics = [g[operand] for operand in (op.scale, op.bias, op.mean, op.variance)]
    return ops.batch_norm_inference(g[op.input], *statistics, op.epsilon)


def _check_input(
    op: LayerNormalization | InstanceNormalization | GroupNormalization,
) -> Refusal | None:
    if op.input.value is not None:
        return Refusal("input", "is constant")
    return one_type(op)


@converts(LayerNormalization, limit=_check_input, nonempty=True)
def layer_normalization(g: Graph, op: LayerNormalization) -> Value:
    rank = rank_of(op.input)
    normal = _normalize(g, op.input, range(op.begin_norm_axis % rank, rank), op.epsilon)
    scaled = ops.multiply(normal, g[op.scale]) if op.scale else normal
    return ops.add(scaled, g[op.bias]) if op.bias else scaled


@converts(InstanceNormalization, limit=_check_input, nonempty=True)
def instance_normalization(g: Graph, op: InstanceNormalization) -> Value:
    rank = rank_of(op.input)
    along = [-1] + [1] * (rank - 2)
    normal = _normalize(g, op.input, range(2, rank), op.epsilon)
    scaled = ops.multiply(normal, g.reshaped(op.scale, along)) if op.scale else normal
    return ops.add(scaled, g.reshaped(op.bias, along)) if op.bias else scaled


@converts(RMSNormalization, limit=one_type, nonempty=True)
def rms_normalization(g: Graph, op: RMSNormalization) -> Node:
    x, rank = g[op.input], rank_of(op.input)
    axes = g.int64(range(op.begin_norm_axis % rank, rank))
    squares = ops.reduce_mean(ops.multiply(x, x), axes, True)
    epsilon = ops.constant(op.epsilon, squares.get_element_type())
    return ops.multiply(ops.divide(x, ops.sqrt(ops.add(squares, epsilon))), g[op.scale])


def _normalize(g: Graph, operand: Operand, axes: Sequence[int], epsilon: float) -> Node:
    return ops.mvn(g[operand], g.int64(axes), True, epsilon, "inside_sqrt")


def _check_group(op: GroupNormalization) -> Refusal | None:
    for slot in ("scale", "bias"):
        if op.operand(slot) is None:
            return Refusal(slot, "is left out")
    if rank_of(op.input) == 2 and op.input.type.static_shape is None:
        return Refusal("input", "has two axes with an open size", Rule.SHAPE)
    return _check_input(op)


@converts(
    GroupNormalization,
    types=FLOAT_TYPES - {ElementType.BFLOAT16},
    limit=_check_group,
    nonempty=True,
)
def group_normalization(g: Graph, op: GroupNormalization) -> Node:
    inputs = [g[operand] for operand in (op.input, op.scale, op.bias) if operand]
    return ops.group_normalization(*inputs, op.groups, op.epsilon)


def _check_lrn(op: LRN) -> Refusal | None:
    shape = op.input.type.shape
    if op.size == 5 and (shape is None or not isinstance(shape[1], int)):
        # Quirk `lrn-of-open-channels`.
        return Refusal("input", "its channels must be known with a size of 5", Rule.SHAPE)
    if shape is not None and len(shape) > 5:
        return Refusal("input", "has more than 5 axes", Rule.SHAPE)
    if not op.bias.is_integer():  # quirk `fraction-of-bias`
        return Refusal("bias", f"{op.bias:g} is no integer")
    return Refusal("size", f"{op.size} is even") if op.size % 2 == 0 else None


@converts(LRN, limit=_check_lrn)
def lrn(g: Graph, op: LRN) -> Node:
    across, alpha = g.int64([1]), op.alpha * op.size
    return ops.lrn(g[op.input], across, alpha, op.beta, op.bias, op.size)
