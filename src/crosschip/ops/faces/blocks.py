"""Names and codes of operators on blocks of images in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import HDI, NNAdapter, NNRt, faces
from crosschip.ops.faces.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.ops.faces.rules import Pairs
from crosschip.ops.standard.blocks import (
    BatchToSpaceND,
    ChannelShuffle,
    DepthToSpace,
    SpaceToBatchND,
    SpaceToDepth,
)

faces(
    ChannelShuffle,
    nnadapter=NNAdapter(11),
)

faces(
    DepthToSpace,
    nnrt=(
        NNRt(
            65,
            "DEPTH_TO_SPACE",
            inputs=(ChannelsLast("input"),),
            parameters={"BLOCK_SIZE": "block_size", "MODE": "mode"},
            given=(ChannelsLastOutput(),),
        ),
    ),
    onnx=("DepthToSpace",),
)

faces(
    SpaceToDepth,
    nnrt=(
        NNRt(
            104,
            "SPACE_TO_DEPTH",
            inputs=(ChannelsLast("input"),),
            parameters={"BLOCK_SIZE": "block_size"},
            given=(ChannelsLastOutput(),),
        ),
    ),
    onnx=("SpaceToDepth",),
)

faces(
    BatchToSpaceND,
    nnrt=(
        NNRt(
            *(4, "BATCH_TO_SPACE_ND", (ChannelsLast("input"),)),
            parameters={"BLOCKSIZE": "block_shape", "CROPS": Pairs("crops")},
            given=(ChannelsLastOutput(),),
        ),
    ),
    hdi=(
        HDI(
            *(22, "BATCH_TO_SPACE_ND", (ChannelsLast("input"),)),
            {"blockShape": "block_shape", "crops": Pairs("crops")},
            (ChannelsLastOutput(),),
        ),
    ),
)

faces(
    SpaceToBatchND,
    nnrt=(
        NNRt(
            *(31, "SPACE_TO_BATCH_ND"),
            parameters={"BLOCK_SHAPE": "block_shape", "PADDINGS": Pairs("pads")},
        ),
    ),
    hdi=(
        HDI(
            *(141, "SPACE_TO_BATCH_ND", (ChannelsLast("input"),)),
            {"blockShape": "block_shape", "paddings": Pairs("pads")},
            (ChannelsLastOutput(),),
        ),
    ),
)
