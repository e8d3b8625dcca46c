"""Rearrangement of channels and pixels."""

from __future__ import annotations

from crosschip.devices.kits.tflite.converters.table import (
    MOVABLE,
    channels_last_type,
    converts_images,
    rank_of,
    shape_of,
    to_channels_first,
    to_channels_last,
)
from crosschip.devices.kits.tflite.native import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.blocks import ChannelShuffle, DepthToSpace, SpaceToDepth
from crosschip.ops.standard.layout import Reshape, Transpose

_MOVED = frozenset(map(ElementType, ("float32", "int8", "uint8", "int32", "int64")))


def _depth_limit(op: DepthToSpace) -> Refusal | None:
    return None if op.mode.name == "DCR" else Refusal("mode", op.mode.name)


@converts_images(DepthToSpace, types=_MOVED, limit=_depth_limit, nonempty=True)
def depth_to_space(g: Graph, op: DepthToSpace) -> Operand:
    return _rearrange(g, op, "DEPTH_TO_SPACE")


@converts_images(SpaceToDepth, types=_MOVED, nonempty=True)
def space_to_depth(g: Graph, op: SpaceToDepth) -> Operand:
    return _rearrange(g, op, "SPACE_TO_DEPTH")


def _rearrange(g: Graph, op: DepthToSpace | SpaceToDepth, code: str) -> Operand:
    output = g.native(
        code,
        to_channels_last(g, op.input),
        type=channels_last_type(op.outputs[0].type),
        block_size=op.block_size,
    )
    return to_channels_first(g, output)


def _shuffle_limit(op: ChannelShuffle) -> Refusal | None:
    rank = rank_of(op.input)
    return None if rank < 5 else Refusal("input", f"has {rank} axes", Rule.SHAPE)


@converts_images(ChannelShuffle, types=MOVABLE, limit=_shuffle_limit, nonempty=True)
def channel_shuffle(g: Graph, op: ChannelShuffle) -> Operand:
    image = to_channels_last(g, op.input)
    shape = shape_of(image)
    groups = g.add(Reshape, image, (*shape[:-1], op.group, shape[-1] // op.group))
    rank = len(shape)
    mixed = g.add(Transpose, groups, (*range(rank - 1), rank, rank - 1))
    return to_channels_first(g, g.add(Reshape, mixed, shape))
