"""Names and codes of operators on blocks of images in other systems."""

from __future__ import annotations

from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import Pairs
from crosschip.ops.standard.blocks import (
    BatchToSpaceND,
    ChannelShuffle,
    DepthToSpace,
    SpaceToBatchND,
    SpaceToDepth,
)

map_operator(ChannelShuffle, nnadapter=NNAdapter(11))

map_operator(
    DepthToSpace,
    nnrt=(
        NNRt(
            65,
            "DEPTH_TO_SPACE",
            inputs=(ChannelsLast("input"),),
            parameters={"BLOCK_SIZE": "block_size", "MODE": "mode"},
            other_rules=(ChannelsLastOutput(),),
        ),
    ),
    onnx=("DepthToSpace",),
)

map_operator(
    SpaceToDepth,
    nnrt=(
        NNRt(
            104,
            "SPACE_TO_DEPTH",
            inputs=(ChannelsLast("input"),),
            parameters={"BLOCK_SIZE": "block_size"},
            other_rules=(ChannelsLastOutput(),),
        ),
    ),
    onnx=("SpaceToDepth",),
)

map_operator(
    BatchToSpaceND,
    nnrt=(
        NNRt(
            4,
            "BATCH_TO_SPACE_ND",
            (ChannelsLast("input"),),
            parameters={"BLOCKSIZE": "block_shape", "CROPS": Pairs("crops")},
            other_rules=(ChannelsLastOutput(),),
        ),
    ),
    hdi=(
        HDI(
            22,
            "BATCH_TO_SPACE_ND",
            (ChannelsLast("input"),),
            {"blockShape": "block_shape", "crops": Pairs("crops")},
            (ChannelsLastOutput(),),
        ),
    ),
)

map_operator(
    SpaceToBatchND,
    nnrt=(
        NNRt(
            31,
            "SPACE_TO_BATCH_ND",
            parameters={"BLOCK_SHAPE": "block_shape", "PADDINGS": Pairs("pads")},
        ),
    ),
    hdi=(
        HDI(
            141,
            "SPACE_TO_BATCH_ND",
            (ChannelsLast("input"),),
            {"blockShape": "block_shape", "paddings": Pairs("pads")},
            (ChannelsLastOutput(),),
        ),
    ),
)
