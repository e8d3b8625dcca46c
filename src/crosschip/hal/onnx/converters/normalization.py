"""Normalizations."""

from __future__ import annotations

import numpy as np

from crosschip.hal import Refusal, Rule
from crosschip.hal.limits import one_type
from crosschip.hal.onnx.converters.table import (
    NARROW_FLOATS,
    converts,
    needs_rank,
    rank_of,
)
from crosschip.hal.onnx.graph import Graph
from crosschip.ir import ElementType, Operand
from crosschip.ops.definition.operator import shape_of
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
)


@converts(BatchNormalization, limit=one_type)
def batch_normalization(g: Graph, op: BatchNormalization) -> str:
    statistics = [g[operand] for operand in (op.scale, op.bias, op.mean, op.variance)]
    return g.add("BatchNormalization", g[op.input], *statistics, epsilon=op.epsilon)


def _scaled(op: LayerNormalization) -> Refusal | None:
    return Refusal("scale", "is left out") if op.scale is None else one_type(op)


@converts(LayerNormalization, limit=_scaled)
def layer_normalization(g: Graph, op: LayerNormalization) -> str:
    inputs = [g[operand] for operand in (op.input, op.scale, op.bias) if operand]
    return g.add("LayerNormalization", *inputs, axis=op.begin_norm_axis, epsilon=op.epsilon)


def _channels(op: InstanceNormalization) -> Refusal | None:
    shape = op.input.type.shape
    if shape is None or not isinstance(shape[1], int):
        return Refusal("input", "its channels must be known", Rule.SHAPE)
    return one_type(op)


@converts(InstanceNormalization, types=NARROW_FLOATS, limit=_channels)
def instance_normalization(g: Graph, op: InstanceNormalization) -> str:
    scale, bias = _per_channel(g, op.input, op.scale, 1), _per_channel(g, op.input, op.bias, 0)
    return g.add("InstanceNormalization", g[op.input], scale, bias, epsilon=op.epsilon)


def _ranked(op: GroupNormalization) -> Refusal | None:
    return needs_rank("input", op.input) or one_type(op)


# ONNX's own GroupNormalization subtracts the square of the mean from the mean of the squares.
@converts(GroupNormalization, types=NARROW_FLOATS, limit=_ranked, nonempty=True)
def group_normalization(g: Graph, op: GroupNormalization) -> str:
    groups = g.add("Reshape", g[op.input], g.int64([0, op.groups, -1]))
    one, zero = (_repeated(g, op.input, op.groups, value) for value in (1, 0))
    normal = g.add("InstanceNormalization", groups, one, zero, epsilon=op.epsilon)
    result = g.add("Reshape", normal, g.add("Shape", g[op.input]))
    channels, ones = (op.input.type.shape or ())[1], [1] * (rank_of(op.input) - 2)
    for node, operand in (("Mul", op.scale), ("Add", op.bias)):
        if operand:
            along = g.int64([-1, *ones])
            if not isinstance(channels, int):
                # One number must not do for all channels: there is no reshaping to a negative size.
                sizes = g.add("Shape", g[op.input], start=1, end=2)
                fits = g.add("Equal", g.add("Shape", g[operand]), sizes)
                along = g.add("Where", fits, along, g.int64([-2, *ones]))
            result = g.add(node, result, g.add("Reshape", g[operand], along))
    return result


def _per_channel(g: Graph, input: Operand, given: Operand | None, standard: float) -> str:
    """What is given for each channel, or else a constant."""
    if given:
        return g[given]
    channels = shape_of(input)[1]
    assert isinstance(channels, int), "supports() asks for it"
    return _repeated(g, input, channels, standard)


def _repeated(g: Graph, like: Operand, count: int, value: float) -> str:
    """A constant list of one number in the element type of an operand."""
    return g.constant(np.full(count, value, like.type.element_type.dtype))


def _image(op: LRN) -> Refusal | None:
    if op.size % 2 == 0:
        return Refusal("size", f"{op.size} is even")
    if op.alpha <= 0 or op.beta <= 0:
        slot = "alpha" if op.alpha <= 0 else "beta"
        return Refusal(slot, f"{getattr(op, slot):g} is not positive")
    shape = op.input.type.shape
    return (
        None
        if shape is not None and len(shape) == 4
        else Refusal("input", "must have 4 axes", Rule.SHAPE)
    )


@converts(LRN, types={ElementType.FLOAT32}, limit=_image)
def lrn(g: Graph, op: LRN) -> str:
    parameters = {"size": op.size, "bias": op.bias, "beta": op.beta}
    return g.add("LRN", g[op.input], alpha=op.alpha * op.size, **parameters)
