"""Examples of comparisons."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)

_COMPARISON = (
    example(input0=random(2, 1, 4), input1=random(3, 1)),
    example(
        input0=random(2, 5, dtype=ElementType.INT32, low=-3, high=3),
        input1=random(5, dtype=ElementType.INT32, low=-3, high=3),
    ),
    example(input0=random(8, dtype=ElementType.BOOL), input1=random(8, dtype=ElementType.BOOL)),
    example(input0=model_input([2**53, 2**53 + 1]), input1=np.array([2**53 + 1, 2**53 + 1])),
    example(
        input0=model_input([np.nan, np.nan, 0.0, np.inf]),
        input1=model_input([np.nan, 1, -0.0, np.inf]),
    ),
    example(
        input0=random(
            6, dtype=ElementType.INT8, low=-8, high=8, quantization=Quantization((0.25,))
        ),
        input1=random(6, dtype=ElementType.UINT8, high=8, quantization=Quantization((0.5,), (4,))),
    ),
)

examples(Equal, *_COMPARISON)

examples(NotEqual, *_COMPARISON)

examples(Less, *_COMPARISON)

examples(LessEqual, *_COMPARISON)

examples(Greater, *_COMPARISON)

examples(GreaterEqual, *_COMPARISON)
