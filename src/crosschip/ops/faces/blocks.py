"""Names and codes of operators on blocks of images in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
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
    nnrt=(NNRt(65, "DEPTH_TO_SPACE", parameters={"BLOCK_SIZE": "block_size", "MODE": "mode"}),),
    onnx=("DepthToSpace",),
)

faces(
    SpaceToDepth,
    nnrt=(NNRt(104, "SPACE_TO_DEPTH", parameters={"BLOCK_SIZE": "block_size"}),),
    onnx=("SpaceToDepth",),
)

faces(
    BatchToSpaceND,
    nnrt=(
        NNRt(
            *(4, "BATCH_TO_SPACE_ND"),
            parameters={"BLOCKSIZE": "block_shape", "CROPS": "crops"},
            translation="`crops` is flattened.",
        ),
    ),
    hdi=(NodeType.BATCH_TO_SPACE_ND,),
)

faces(
    SpaceToBatchND,
    nnrt=(
        NNRt(
            *(31, "SPACE_TO_BATCH_ND"),
            parameters={"BLOCK_SHAPE": "block_shape", "PADDINGS": "pads"},
            translation="`pads` is flattened.",
        ),
    ),
    hdi=(NodeType.SPACE_TO_BATCH_ND,),
)
