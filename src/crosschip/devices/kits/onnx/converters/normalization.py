"""Normalizations."""

from __future__ import annotations

import math

import numpy as np

from crosschip.devices.kits.limits import one_type
from crosschip.devices.kits.onnx.converters.table import (
    NARROW_FLOATS,
    converts,
    needs_rank,
    rank_of,
    refused_unless,
    same,
)
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.definition.windows import is_static, static
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    RMSNormalization,
)

converts(BatchNormalization, limit=one_type)(same("BatchNormalization", "epsilon"))


def _layer_limit(op: LayerNormalization) -> Refusal | None:
    return Refusal("scale", "is left out") if op.scale is None else one_type(op)


@converts(LayerNormalization, limit=_layer_limit, nonempty=True)
def layer_normalization(g: Graph, op: LayerNormalization) -> str:
    inputs = [g[operand] for operand in (op.input, op.scale, op.bias) if operand]
    return g.add("LayerNormalization", *inputs, axis=op.begin_norm_axis, epsilon=op.epsilon)


def _instance_limit(op: InstanceNormalization) -> Refusal | None:
    shape = op.input.type.shape
    if shape is None or not isinstance(shape[1], int):
        return Refusal("input", "its channels must be known", Rule.SHAPE)
    return one_type(op)


@converts(InstanceNormalization, types=NARROW_FLOATS, limit=_instance_limit, nonempty=True)
def instance_normalization(g: Graph, op: InstanceNormalization) -> str:
    scale, bias = _per_channel(g, op.input, op.scale, 1), _per_channel(g, op.input, op.bias, 0)
    channels, *image = shape_of(op.input)[1:]
    if is_static(image):
        return g.add("InstanceNormalization", g[op.input], scale, bias, epsilon=op.epsilon)
    assert isinstance(channels, int), "the limit requires it"
    return _normalize_groups(g, op, channels, scale, bias)


def _group_limit(op: GroupNormalization) -> Refusal | None:
    return needs_rank("input", op.input) or one_type(op)


# ONNX's own GroupNormalization subtracts the square of the mean from the mean of the squares.
@converts(GroupNormalization, types=NARROW_FLOATS, limit=_group_limit, nonempty=True)
def group_normalization(g: Graph, op: GroupNormalization) -> str:
    one, zero = (_repeat(g, op.input, op.groups, value) for value in (1, 0))
    result = _normalize_groups(g, op, op.groups, one, zero)
    channels, ones = (op.input.type.shape or ())[1], [1] * (rank_of(op.input) - 2)
    for node, operand in (("Mul", op.scale), ("Add", op.bias)):
        if operand:
            # ONNX would broadcast a single number; Reshape to a negative size fails.
            along = g.int64([channels if isinstance(channels, int) else -1, *ones])
            if not isinstance(channels, int):
                sizes = g.add("Shape", g[op.input], start=1, end=2)
                fits = g.add("Equal", g.add("Shape", g[operand]), sizes)
                along = g.add("Where", fits, along, g.int64([-2, *ones]))
            result = g.add(node, result, g.add("Reshape", g[operand], along))
    return result


def _normalize_groups(
    g: Graph, op: InstanceNormalization | GroupNormalization, groups: int, scale: str, bias: str
) -> str:
    """Normalize groups of channels, with a scale and a bias per group."""
    grouped = g.add("Reshape", g[op.input], _grouped_shape(g, op, groups), allowzero=1)
    normal = g.add("InstanceNormalization", grouped, scale, bias, epsilon=op.epsilon)
    return g.add("Reshape", normal, g.add("Shape", g[op.input]), allowzero=1)


def _grouped_shape(g: Graph, op: InstanceNormalization | GroupNormalization, groups: int) -> str:
    """Return the shape [batch, groups, elements per group].

    The batch is 0 if groups are empty: ONNX Runtime ends the process on empty groups.
    """
    batch, sizes = g.add("Shape", g[op.input], end=1), shape_of(op.input)[1:]
    if is_static(sizes):
        group_size = g.int64([math.prod(static(sizes)) // groups])
        return g.add("Concat", batch, g.int64([groups]), group_size, axis=0)
    channels, divisor = g.add("Shape", g[op.input], start=1, end=2), g.int64([groups])
    group_size = g.add("Div", channels, divisor)
    if not isinstance(sizes[0], int):
        divides = g.add("Equal", g.add("Mod", channels, divisor), g.int64([0]))
        group_size = refused_unless(g, divides, group_size, g.int64([1]))
    for axis in range(2, rank_of(op.input)):
        group_size = g.add("Mul", group_size, g.add("Shape", g[op.input], start=axis, end=axis + 1))
    batch = g.add("Mul", batch, g.add("Min", group_size, g.int64([1])))
    return g.add("Concat", batch, divisor, group_size, axis=0)


def _per_channel(g: Graph, input: Operand, values: Operand | None, default: float) -> str:
    """Return the values per channel, or a constant one if they are omitted."""
    if values:
        return g[values]
    channels = shape_of(input)[1]
    assert isinstance(channels, int), "the limit requires it"
    return _repeat(g, input, channels, default)


def _repeat(g: Graph, like: Operand, count: int, value: float) -> str:
    """Add a constant list of one repeated number in an operand's element type."""
    return g.constant(np.full(count, value, like.type.element_type.dtype))


def _rms_limit(op: RMSNormalization) -> Refusal | None:
    shape = op.input.type.shape
    if shape is None or op.scale.type.shape != shape[op.begin_norm_axis :]:
        return Refusal("scale", "must have the normalized axes' sizes", Rule.SHAPE)
    return one_type(op)


# ONNX Runtime registers this operator in ONNX's own domain.
@converts(RMSNormalization, limit=_rms_limit, nonempty=True)
def rms_normalization(g: Graph, op: RMSNormalization) -> str:
    inputs = (g[op.input], g[op.scale])
    return g.add(
        "SimplifiedLayerNormalization", *inputs, axis=op.begin_norm_axis, epsilon=op.epsilon
    )


def _lrn_limit(op: LRN) -> Refusal | None:
    if op.size % 2 == 0:
        return Refusal("size", f"{op.size} is even")
    for slot in ("alpha", "beta", "bias"):
        if getattr(op, slot) <= 0:
            return Refusal(slot, f"{getattr(op, slot):g} is not positive")
    if op.bias < op.alpha / 10:
        # ONNX Runtime adds and subtracts squares in a running sum (quirk squares-taken-away).
        return Refusal("bias", f"{op.bias:g} is lost beside the squares")
    shape = op.input.type.shape
    return (
        None
        if shape is not None and len(shape) == 4
        else Refusal("input", "must have 4 axes", Rule.SHAPE)
    )


@converts(LRN, types={ElementType.FLOAT32}, limit=_lrn_limit)
def lrn(g: Graph, op: LRN) -> str:
    parameters = {"size": op.size, "bias": op.bias, "beta": op.beta}
    return g.add("LRN", g[op.input], alpha=op.alpha * op.size, **parameters)
