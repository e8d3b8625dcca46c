"""Examples of gathering and scattering."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.examples.common import INT8_CUBE
from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
    SparseToDense,
)

examples(
    GatherND,
    example(input=random(3, 4), indices=model_input([[0, 1], [2, -1]])),
    example(input=random(3, 4, 2), indices=model_input([[[2], [0]], [[1], [1]]])),
    example(input=random(2, 3, 4), indices=model_input([[2], [0]]), batch_dims=1),
    example(
        input=random(2, 3, dtype=ElementType.INT64, low=-9, high=9),
        indices=model_input(np.array([1, 2], np.int32)),
    ),
)

examples(
    GatherElements,
    example(input=random(3, 4), indices=model_input([[0, 2, -1, 1], [2, 2, 0, -3]])),
    example(input=random(2, 3), indices=model_input([[0, 0], [2, -1]]), axis=1),
    example(
        input=random(2, 2, 3, dtype=ElementType.INT32, low=-9, high=9),
        indices=model_input(np.array([[[2, 0]], [[1, 1]]], np.int32)),
        axis=-1,
    ),
)

examples(
    ScatterND,
    example(input=random(5), indices=model_input([[1], [-2]]), updates=random(2)),
    example(input=random(3, 4), indices=model_input([[2, 1], [0, 3]]), updates=random(2)),
    example(
        input=random(3, 2),
        indices=model_input([[0], [2], [0]]),
        updates=random(3, 2),
        reduction=Scatter.ADD,
    ),
    example(
        input=np.zeros((3, 2), np.float32),
        indices=model_input([[2], [0], [2]]),
        updates=random(3, 2),
        reduction=Scatter.ADD,
    ),
    *(
        example(
            input=random(4),
            indices=model_input([[3], [1], [3]]),
            updates=random(3),
            reduction=reduction,
        )
        for reduction in (Scatter.MUL, Scatter.MAX, Scatter.MIN)
    ),
    example(
        input=random(4, dtype=ElementType.INT64, low=-9, high=9),
        indices=model_input(np.array([[0], [3]], np.int32)),
        updates=random(2, dtype=ElementType.INT64, low=-9, high=9),
    ),
)

examples(
    ScatterElements,
    example(input=random(3, 3), indices=model_input([[1, 0, 2], [0, 2, 1]]), updates=random(2, 3)),
    example(input=random(2, 5), indices=model_input([[1, -1]]), updates=random(1, 2), axis=1),
    example(
        input=random(2, 3),
        indices=model_input([[0, 0, 1], [2, 2, 2]]),
        updates=random(2, 3),
        axis=-1,
        reduction=Scatter.ADD,
    ),
    example(
        input=random(4, dtype=ElementType.INT32, low=-9, high=9),
        indices=model_input([1, 1]),
        updates=random(2, dtype=ElementType.INT32, low=-9, high=9),
        reduction=Scatter.MAX,
    ),
)

examples(
    SparseToDense,
    example(indices=model_input([[0, 1], [2, 0]]), values=random(2), shape=(3, 4)),
    example(
        indices=model_input([[3], [1]]),
        values=random(2, dtype=ElementType.INT64, low=-9, high=9),
        shape=model_input([5]),
        default_value=np.int64(-1),
    ),
)

examples(
    Gather,
    example(input=random(4, 3), indices=model_input([[1, 0], [-1, 2]])),
    example(input=random(2, 3, 4), indices=model_input(np.array([2, 2], np.int32)), axis=-2),
    example(input=random(2, 3), indices=model_input(1), axis=1),
    example(input=random(2, 3), indices=model_input(np.zeros(0, np.int64)), axis=1),
    example(input=INT8_CUBE, indices=model_input([0, 2]), axis=1),
)
