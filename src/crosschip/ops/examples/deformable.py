"""Examples of deformable convolutions."""

from __future__ import annotations

from crosschip.ops.definition.examples import example, examples, random
from crosschip.ops.standard.deformable import DeformableConv2D

examples(
    DeformableConv2D,
    example(
        input=random(2, 2, 5, 6),
        offset=random(2, 8, 4, 5),
        mask=random(2, 4, 4, 5, low=0, high=1),
        filter=random(3, 2, 2, 2),
        bias=random(3),
    ),
    example(
        input=random(1, 4, 6, 7),
        offset=random(1, 24, 4, 3),
        mask=random(1, 12, 4, 3, low=0, high=1),
        filter=random(6, 2, 2, 3),
        pads=(1, 2, 1, 1),
        strides=(2, 2),
        group=2,
        deformable_group=2,
        dilations=(2, 2),
        fuse_code=1,
    ),
    example(
        input=random(1, 2, 4, 4), offset=random(1, 8, 3, 3), filter=random(2, 1, 2, 2), group=2
    ),
)
