"""Examples of searches."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.examples.common import INT8_ROWS
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, SearchSorted, TopK, Unique

_ARG_EXTREME = (
    example(input=random(2, 5, 3), axis=1),
    example(input=random(2, 5, 3), axis=-1, keepdim=False, dtype=ElementType.INT32),
    example(input=random(4, 6, dtype=ElementType.INT32, low=-2, high=2), axis=1),
    example(input=random(4, 6, dtype=ElementType.INT32, low=-2, high=2), axis=0, select_last=True),
    example(input=random(4, 6, dtype=ElementType.FLOAT16), axis=-2, keepdim=False),
    example(input=INT8_ROWS, axis=1),
)

examples(ArgMax, *_ARG_EXTREME)

examples(ArgMin, *_ARG_EXTREME)

examples(
    TopK,
    example(input=random(3, 7), k=3),
    example(input=random(3, 7, 2), k=2, axis=1, largest=False),
    example(
        input=random(4, 5, dtype=ElementType.INT32, low=-2, high=2),
        **{"k": 4, "axis": -1, "return_indices_dtype": ElementType.INT32},
    ),
    example(input=random(6, 2, dtype=ElementType.INT64, low=-9, high=9), k=1, axis=0),
    example(input=random(2, 8, dtype=ElementType.FLOAT16), k=8, axis=1, largest=False),
    example(input=INT8_ROWS, k=3, axis=1),
)

examples(
    NonZero,
    example(input=random(3, 4, dtype=ElementType.BOOL)),
    example(input=model_input([[0.0, -1.5], [2.0, 0.0]])),
    example(input=model_input(np.array([0, 3, 0, -2], np.int32))),
)

examples(
    Unique,
    example(input=model_input([2.0, 1.0, 1.0, 3.0, 2.0])),
    example(input=model_input([[2, 1, 1], [3, 4, 2]]), sorted=False),
    example(input=model_input([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), axis=0),
    example(input=model_input([[3, 1, 3], [1, 1, 1]]), axis=-1, sorted=False),
    example(input=random(7, dtype=ElementType.INT64, low=0, high=3)),
)

examples(
    SearchSorted,
    example(sorted_sequence=random(32, ascending=True), values=random(2, 5)),
    example(sorted_sequence=random(2, 20, ascending=True), values=random(2, 3), right=True),
    example(
        sorted_sequence=random(1, 7, dtype=ElementType.INT32, low=0, high=5, ascending=True),
        values=random(3, 6, dtype=ElementType.INT32, low=0, high=6),
        dtype=ElementType.INT32,
    ),
    example(
        sorted_sequence=np.array([-5, 0, 0, 9]),
        values=random(7, dtype=ElementType.INT64, low=-9, high=12),
        right=True,
        dtype=ElementType.INT32,
    ),
)
