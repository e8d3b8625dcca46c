"""Examples of changes of shape and axis order."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.examples.common import INT8_BY_CHANNEL, INT8_CUBE
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze

examples(
    Reshape,
    example(input=random(2, 3, 4), shape=(4, 6)),
    example(input=random(2, 3, 4), shape=(0, -1)),
    example(input=random(2, 3, 4, dtype=ElementType.INT32, low=-9, high=9), shape=(1, 0, 8)),
    example(input=random(1, 1), shape=()),
    example(input=random(4, 6), shape=model_input([2, 3, 4])),
    example(input=random(0, 3), shape=(0, 1, 3)),
    example(input=random(0, 3), shape=(3, 0, 2), allow_zero=True),
    example(input=INT8_CUBE, shape=(6, 4)),
)

examples(
    Transpose,
    example(input=random(2, 3, 4), perm=(2, 0, 1)),
    example(input=random(2, 3, 4, 5), perm=(0, -2, -1, 1)),
    example(input=random(2, 3, dtype=ElementType.BOOL), perm=(1, 0)),
    example(input=random(), perm=()),
    example(input=INT8_BY_CHANNEL, perm=(1, 2, 0)),
)

examples(
    Squeeze,
    example(input=random(1, 3, 1), axes=(0,)),
    example(input=random(1, 3, 1, 2), axes=(-2, 0)),
    example(input=model_input(np.ones((1, 3, 1), np.float32))),
    example(input=random(1, 1, dtype=ElementType.INT64, low=-9, high=9), axes=(0, 1)),
    example(
        input=random(
            *(1, 3, 1),
            dtype=ElementType.UINT8,
            high=256,
            quantization=Quantization((0.5, 2, 1), (128, 0, 3), axis=1),
        ),
        axes=(0,),
    ),
)

examples(
    Unsqueeze,
    example(input=random(2, 3), axes=(0,)),
    example(input=random(2, 3), axes=(-1, 1)),
    example(input=random(dtype=ElementType.INT32, low=-9, high=9), axes=(0,)),
    example(input=model_input(np.zeros((0, 3), np.float32)), axes=(0,)),
    example(input=INT8_BY_CHANNEL, axes=(0, 4)),
)

examples(
    Flatten,
    example(input=random(2, 3, 4)),
    example(input=random(2, 3, 4, 5), start_axis=1, end_axis=2),
    example(input=random(2, 3, 4), start_axis=-3, end_axis=-2),
    example(input=random()),
    example(input=INT8_CUBE, start_axis=0),
)

examples(
    Expand,
    example(input=random(2, 1, 4), shape=(2, 3, 4)),
    example(input=random(2, 1, 4), shape=(5, 2, -1, 4)),
    example(input=random(3, 1), shape=(1, 1)),
    example(input=random(3, 1, dtype=ElementType.INT64), shape=model_input([2, 1, 5])),
    example(input=random(1, 2, dtype=ElementType.BOOL), shape=(0, 2)),
)
