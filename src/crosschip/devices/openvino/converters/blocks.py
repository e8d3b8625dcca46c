"""Shuffled channels."""

from __future__ import annotations

from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.openvino.converters.table import MOVABLE, check_uint32, converts
from crosschip.devices.openvino.graph import Graph
from crosschip.ops.standard.blocks import ChannelShuffle


@converts(ChannelShuffle, types=MOVABLE, limit=check_uint32)
def channel_shuffle(g: Graph, op: ChannelShuffle) -> Node:
    return ops.shuffle_channels(g[op.input], 1, op.group)
