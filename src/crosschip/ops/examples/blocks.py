"""Examples of operators on blocks of images."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, random
from crosschip.ops.standard.blocks import (
    BatchToSpaceND,
    ChannelShuffle,
    DepthOrder,
    DepthToSpace,
    SpaceToBatchND,
    SpaceToDepth,
)

_INT8 = random(
    1, 8, 2, 4, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
)

examples(
    ChannelShuffle,
    example(input=random(2, 6, 3, 2), group=2),
    example(input=random(1, 6, 4), group=3),
    example(input=_INT8, group=4),
)

examples(
    DepthToSpace,
    example(input=random(1, 8, 2, 3), block_size=2),
    example(input=random(2, 8, 3, 2), block_size=2, mode=DepthOrder.CRD),
    example(input=random(1, 9, 1, 2, dtype=ElementType.INT32), block_size=3),
    example(input=_INT8, block_size=2),
)

examples(
    SpaceToDepth,
    example(input=random(1, 2, 4, 6), block_size=2),
    example(input=random(2, 3, 3, 3, dtype=ElementType.INT64, low=-9, high=9), block_size=3),
    example(input=_INT8, block_size=2),
)

examples(
    BatchToSpaceND,
    example(input=random(4, 2, 2, 3), block_shape=(2, 2), crops=(0, 0, 0, 0)),
    example(input=random(6, 1, 2, 2), block_shape=(3, 1), crops=(1, 2, 0, 1)),
    example(
        input=random(4, 1, 3, dtype=ElementType.INT32, low=-9, high=9),
        block_shape=(2,),
        crops=(1, 0),
    ),
)

examples(
    SpaceToBatchND,
    example(input=random(1, 2, 4, 6), block_shape=(2, 2), pads=(0, 0, 0, 0)),
    example(input=random(2, 1, 3, 4), block_shape=(3, 2), pads=(1, 2, 0, 2)),
    example(
        input=random(2, 1, 5, dtype=ElementType.INT32, low=-9, high=9),
        block_shape=(2,),
        pads=(1, 0),
    ),
)
