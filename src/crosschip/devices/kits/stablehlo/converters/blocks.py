"""Blocks of images moved between axes, by reshapes and transpositions."""

from __future__ import annotations

from crosschip.devices.kits.stablehlo.converters.table import converts, decomposed
from crosschip.ops.standard import blocks

converts(
    blocks.ChannelShuffle,
    blocks.DepthToSpace,
    blocks.SpaceToDepth,
    blocks.BatchToSpaceND,
    blocks.SpaceToBatchND,
)(decomposed)
