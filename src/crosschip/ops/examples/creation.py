"""Examples of creation of tensors."""

from __future__ import annotations

import numpy as np

from crosschip.ir.types import ElementType
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.standard.creation import Fill, FillLike, OneHot, Range, Rank, ShapeOf

examples(
    ShapeOf,
    example(input=random(2, 3, 4)),
    example(input=random(0, 5), dtype=ElementType.INT32),
    example(input=random(dtype=ElementType.BOOL)),
)

examples(Rank, example(input=random(2, 3, 4)), example(input=random()))

examples(
    Fill,
    example(shape=(2, 3), value=random(1)),
    example(shape=(), value=np.int64(7)),
    example(shape=(0, 2), value=np.bool_(True)),
    example(shape=model_input([2, 1]), value=np.float32(0.5)),
    example(shape=model_input(np.array([3], np.int32)), value=random(dtype=ElementType.INT32)),
)

examples(
    FillLike,
    example(input=random(2, 3), value=np.float32(1.5)),
    example(input=random(2, 0), value=np.int64(3)),
    example(input=random(3, dtype=ElementType.BOOL), value=random(1)),
)

examples(
    Range,
    example(start=np.float32(0), end=np.float32(2), step=np.float32(0.3)),
    example(start=np.int32(5), end=np.int32(-4), step=np.int32(-3)),
    example(start=model_input(0), end=model_input(4), step=model_input(1)),
    example(start=np.int64(3), end=np.int64(3), step=np.int64(1)),
    example(start=model_input([1]), end=model_input([6]), step=model_input([2])),
)

examples(
    OneHot,
    example(
        indices=model_input([[0, 2], [-1, 7]]),
        depth=4,
        on_value=np.float32(1),
        off_value=np.float32(0),
    ),
    example(
        indices=model_input([1, 0]),
        depth=3,
        on_value=model_input([5]),
        off_value=model_input([-1]),
        axis=0,
    ),
    example(
        indices=model_input([1.0, 2.9, -1.0]),
        depth=model_input(3),
        on_value=np.bool_(True),
        off_value=np.bool_(False),
        axis=1,
    ),
    example(
        indices=random(2, 2, dtype=ElementType.INT32, low=0, high=3),
        depth=3,
        on_value=np.int64(1),
        off_value=np.int64(0),
        axis=-2,
    ),
)
