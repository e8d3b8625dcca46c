"""Examples of logical and bitwise operators."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.standard.logical import (
    And,
    BitShift,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Not,
    Or,
    ShiftDirection,
    Where,
    Xor,
)

_LOGICAL = (
    example(
        input0=model_input([True, True, False, False]),
        input1=model_input([True, False, True, False]),
    ),
    example(
        input0=random(2, 1, 4, dtype=ElementType.BOOL), input1=random(3, 1, dtype=ElementType.BOOL)
    ),
    example(input0=random(2, 3, dtype=ElementType.BOOL), input1=np.array(True)),
)

examples(
    Not,
    example(input=random(2, 3, dtype=ElementType.BOOL)),
    example(input=random(dtype=ElementType.BOOL)),
)

examples(And, *_LOGICAL)

examples(Or, *_LOGICAL)

examples(Xor, *_LOGICAL)

examples(
    Where,
    example(
        condition=random(2, 3, dtype=ElementType.BOOL), input0=random(2, 3), input1=random(2, 3)
    ),
    example(
        condition=random(3, 1, dtype=ElementType.BOOL), input0=random(2, 1, 4), input1=np.float32(1)
    ),
    example(condition=model_input(True), input0=model_input([np.nan, 1]), input1=random(3, 2)),
    example(
        condition=random(4, dtype=ElementType.BOOL),
        input0=random(4, dtype=ElementType.INT32, low=-9, high=9),
        input1=random(dtype=ElementType.INT32, low=-9, high=9),
    ),
    example(
        condition=random(4, dtype=ElementType.BOOL),
        input0=random(4, dtype=ElementType.INT8, low=-9, high=9, quantization=Quantization((0.1,))),
        input1=random(4, dtype=ElementType.INT8, low=-9, high=9, quantization=Quantization((0.1,))),
    ),
    example(
        condition=random(4, dtype=ElementType.BOOL),
        input0=random(4, dtype=ElementType.INT8, low=-9, high=9, quantization=Quantization((0.1,))),
        input1=random(4, dtype=ElementType.INT8, low=-9, high=9, quantization=Quantization((0.2,))),
        quantization=Quantization((0.2,)),
    ),
)

_BITWISE = (
    example(
        input0=random(2, 1, 4, dtype=ElementType.INT32, low=-99, high=99),
        input1=random(3, 1, dtype=ElementType.INT32, low=-99, high=99),
    ),
    example(
        input0=random(8, dtype=ElementType.UINT8, high=256),
        input1=random(8, dtype=ElementType.UINT8, high=256),
    ),
    example(
        input0=random(8, dtype=ElementType.INT8, low=-128, high=128),
        input1=random(8, dtype=ElementType.INT8, low=-128, high=128),
    ),
    example(input0=model_input([2**62 + 1, -1]), input1=np.array([-(2**62), 2**62 + 3])),
)

examples(BitwiseAnd, *_BITWISE)

examples(BitwiseOr, *_BITWISE)

examples(BitwiseXor, *_BITWISE)

examples(
    BitwiseNot,
    example(input=random(2, 3, dtype=ElementType.INT32, low=-99, high=99)),
    example(input=random(5, dtype=ElementType.UINT8, high=256)),
    example(input=random(dtype=ElementType.INT64, low=-9, high=9)),
)

examples(
    BitShift,
    example(
        input0=random(2, 4, dtype=ElementType.UINT8, high=256),
        input1=random(4, dtype=ElementType.UINT8, high=8),
    ),
    example(
        input0=random(4, dtype=ElementType.UINT32, high=2**32),
        input1=np.array([3], np.uint32),
        direction=ShiftDirection.RIGHT,
    ),
    example(
        input0=model_input([-7, 7, -(2**62), 1]), input1=model_input([1, 2, 64, 63]), direction=1
    ),
    example(input0=model_input([-7, 7, -1, 1]), input1=model_input([1, -1, 64, 63]), direction=0),
)
