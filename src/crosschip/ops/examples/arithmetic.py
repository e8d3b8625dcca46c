"""Examples of arithmetic."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.arithmetic import (
    Add,
    BiasAdd,
    Clip,
    Div,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    Scale,
    SquaredDifference,
    Sub,
    Sum,
)

FLOAT_PAIRS = (
    example(input0=random(2, 3), input1=random(2, 3)),
    example(input0=random(2, 1, 4), input1=random(3, 1)),
    example(
        input0=random(3, dtype=ElementType.FLOAT16),
        input1=random(dtype=ElementType.FLOAT16),
        fuse_code=Fuse.RELU6,
    ),
)

INTEGER_PAIRS = (
    example(
        input0=random(9, dtype=ElementType.INT32, low=-99, high=99),
        input1=random(9, dtype=ElementType.INT32, low=-9, high=9),
    ),
    example(
        input0=model_input(np.array([3, 250], np.uint8)),
        input1=model_input(np.array([5, 9], np.uint8)),
    ),
)

QUANTIZED_PAIRS = (
    example(
        input0=random(
            2, 3, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
        ),
        input1=random(
            3, dtype=ElementType.INT8, low=1, high=128, quantization=Quantization((0.02,))
        ),
        fuse_code=Fuse.RELU,
        quantization=Quantization((0.1,)),
    ),
    example(
        input0=random(
            2, 3, dtype=ElementType.UINT8, high=256, quantization=Quantization((0.05,), (120,))
        ),
        input1=random(
            2, 3, dtype=ElementType.UINT8, low=4, high=256, quantization=Quantization((0.02,), (3,))
        ),
        quantization=Quantization((0.1,), (128,)),
    ),
)

examples(
    Add,
    *FLOAT_PAIRS,
    *INTEGER_PAIRS,
    *QUANTIZED_PAIRS,
    example(
        input0=random(
            4, dtype=ElementType.INT16, low=-999, high=999, quantization=Quantization((0.01,))
        ),
        input1=random(
            4, dtype=ElementType.INT16, low=-999, high=999, quantization=Quantization((0.02,))
        ),
        quantization=Quantization((0.002,)),
    ),
)

examples(Sub, *FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

examples(Mul, *FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

examples(
    Div,
    *FLOAT_PAIRS,
    *INTEGER_PAIRS,
    *QUANTIZED_PAIRS,
    example(input0=model_input([7, -7, 0]), input1=np.array([2, 2, 3])),
)

examples(
    Pow,
    example(input0=random(2, 1, 4, low=0.1), input1=random(3, 1)),
    example(input0=random(5), input1=2.0, fuse_code=Fuse.RELU1),
    example(input0=model_input([2, -3, 7, 0, -1, 5]), input1=model_input([10, 3, 0, 0, -3, -1])),
    *QUANTIZED_PAIRS[1:],
)

examples(Max, *FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

examples(Min, *FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

examples(SquaredDifference, *(dict(e) for e in FLOAT_PAIRS[:2]), *INTEGER_PAIRS)

examples(
    Sum,
    example(terms=[random(2, 3), random(3), random(2, 1)]),
    example(terms=[random(4)]),
    example(terms=[random(2, dtype=ElementType.INT64, low=-9, high=9) for _ in range(2)]),
    example(
        terms=[
            random(
                3, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((scale,))
            )
            for scale in (0.1, 0.2)
        ],
        quantization=Quantization((0.3,)),
    ),
)

examples(
    Clip,
    example(input=random(2, 3), min=-0.5, max=0.5),
    example(input=random(2, 3), min=1.0, max=-1.0),
    example(input=random(4), max=model_input(np.array([1.0], np.float32))),
    example(input=random(5, dtype=ElementType.INT32, low=-9, high=9), min=-2.5, max=3),
    example(input=model_input([-(2**62) - 1, 2**62 + 3, 5]), min=-(2**62), max=2**62 + 1),
    example(input=random(5, dtype=ElementType.UINT8, high=256), min=-1, max=200.5),
    example(
        input=random(
            5, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.1,))
        ),
        min=-1.0,
        quantization=Quantization((0.1,)),
    ),
)

examples(
    BiasAdd,
    example(input=random(2, 3), bias=random(3)),
    example(input=random(2, 3, 4, 5), bias=random(3), axis=1),
    example(
        input=random(2, 3, dtype=ElementType.INT32, low=-9, high=9),
        bias=np.array([1, 2], np.int32),
        axis=-2,
    ),
    example(
        input=random(
            2, 3, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
        ),
        bias=random(
            3, dtype=ElementType.INT32, low=-99, high=99, quantization=Quantization((0.01,))
        ),
        quantization=Quantization((0.05,)),
    ),
)

examples(
    Scale,
    example(input=random(2, 3, 4, 5), scale=random(3), bias=random(3), axis=1),
    example(input=random(2, 3, 4), scale=random(3, 4), axis=-2, fuse_code=Fuse.RELU),
    example(input=random(2, 3), scale=random(), bias=random(2), axis=0),
    example(
        input=random(
            2, 3, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
        ),
        scale=random(3),
        bias=random(3),
        axis=1,
        fuse_code=Fuse.RELU6,
        quantization=Quantization((0.05,)),
    ),
)

examples(FloorDiv, *FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

examples(
    Mod,
    example(input0=random(2, 1, 4, high=9), input1=random(3, 1, low=0.5)),
    example(input0=random(2, 4, low=-9), input1=random(4, low=0.5), fmod=True),
    *INTEGER_PAIRS,
    example(input0=model_input([-7, 7, -7, 7]), input1=model_input([3, -3, -3, 3]), fmod=True),
    example(input0=model_input([-7, 7, -7, 7]), input1=np.array([3, -3, -3, 3])),
)
