"""Examples of reductions."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import Example, example, examples, random
from crosschip.ops.examples.common import INT8_ROWS
from crosschip.ops.standard.reduction import (
    CumProd,
    CumSum,
    ReduceAll,
    ReduceAny,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)

_EIGHTH = Quantization((0.125,))

REALS: tuple[Example, ...] = (
    example(input=random(2, 3, 4, low=0.5), axes=(1,)),
    example(input=random(2, 3, 4, low=0.5), axes=(0, -1), keepdim=False),
    example(input=random(3, 5, low=0.5)),
    example(input=random(2, 6, dtype=ElementType.FLOAT16, low=0.5), axes=(-1,)),
)

INTEGERS: tuple[Example, ...] = (
    example(input=random(3, 4, dtype=ElementType.INT32, low=-9, high=9), axes=(0,)),
    example(input=random(3, 4, dtype=ElementType.INT64, low=-9, high=9), axes=(1,), keepdim=False),
)

QUANTIZED: tuple[Example, ...] = (
    example(
        input=random(2, 9, dtype=ElementType.INT8, low=-128, high=128, quantization=_EIGHTH),
        axes=(1,),
        quantization=Quantization((0.5,)),
    ),
    example(
        input=random(
            *(2, 9), dtype=ElementType.UINT8, high=256, quantization=Quantization((0.1,), (128,))
        ),
        axes=(0,),
        quantization=Quantization((0.1,), (120,)),
    ),
)

_COMPARED: tuple[Example, ...] = (
    *(*REALS, *INTEGERS, *QUANTIZED),
    example(input=random(3, 4, dtype=ElementType.UINT8, high=256), axes=(1,)),
    example(input=random(3, 4, dtype=ElementType.BOOL), axes=(1,)),
)

examples(ReduceSum, *REALS, *INTEGERS, *QUANTIZED)

examples(ReduceProd, *REALS, *INTEGERS)

examples(ReduceMax, *_COMPARED)

examples(ReduceMin, *_COMPARED)

examples(ReduceMean, *REALS, *QUANTIZED)

_REDUCE_ALL = (
    example(input=random(4, 2, dtype=ElementType.BOOL), axes=(1,)),
    example(input=random(4, 2, dtype=ElementType.BOOL), axes=(-1,), keepdim=False),
    example(input=random(2, 3, dtype=ElementType.BOOL)),
)

examples(ReduceAll, *_REDUCE_ALL)

examples(ReduceAny, *_REDUCE_ALL)

examples(ReduceL1, *REALS, *INTEGERS)

examples(ReduceSumSquare, *REALS, *INTEGERS)

examples(ReduceL2, *REALS, *QUANTIZED)

examples(ReduceLogSum, *REALS)

examples(ReduceLogSumExp, *REALS)

examples(
    CumSum,
    example(input=random(3, 5)),
    example(input=random(3, 5, 2), axis=1, exclusive=True),
    example(input=random(3, 5), axis=0, reverse=True),
    example(input=random(6), axis=-1, exclusive=True, reverse=True),
    example(input=random(3, 4, dtype=ElementType.INT32, low=-9, high=9), axis=1),
    example(input=INT8_ROWS, axis=1, quantization=Quantization((1.0,))),
)

examples(
    CumProd,
    example(input=random(3, 5)),
    example(input=random(3, 5, 2), axis=1, exclusive=True),
    example(input=random(3, 5), axis=0, reverse=True),
    example(input=random(6), axis=-1, exclusive=True, reverse=True),
    example(input=random(3, 4, dtype=ElementType.INT32, low=-9, high=9), axis=1),
)
