"""Operators that move blocks of images between axes."""

from __future__ import annotations

from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.images import Images
from crosschip.importers.paddle.table import imports
from crosschip.ops.standard.blocks import ChannelShuffle, DepthOrder, DepthToSpace


@imports("shuffle_channel")
def shuffle_channel(op: Context) -> None:
    op.make(ChannelShuffle, op.input(), op.integer("group"))


@imports("pixel_shuffle")
def pixel_shuffle(op: Context) -> None:
    images = Images(op)
    size = op.integer("upscale_factor", 1)
    images.make(DepthToSpace, images.input("X"), size, DepthOrder.CRD)
