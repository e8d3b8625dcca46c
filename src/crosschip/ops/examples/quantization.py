"""Examples of quantization."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, random
from crosschip.ops.standard.quantization import (
    Dequantize,
    DequantizeBlocks,
    DynamicQuantize,
    Quantize,
    Reinterpret,
)

examples(
    Quantize,
    example(input=random(2, 3, low=-10, high=10), scale=(0.05,)),
    example(input=random(2, 3), scale=(0.01,), zero_point=(128.0,), dtype=ElementType.UINT8),
    example(input=random(2, 3, 2), axis=-2, scale=(0.02, 0.01, 0.5)),
    example(
        input=random(2, 3),
        axis=0,
        scale=(0.01, 0.005),
        zero_point=(10.0, 200.0),
        dtype=ElementType.UINT8,
    ),
    *(
        example(input=random(2, 9), scale=(0.25,), dtype=dtype)
        for dtype in (
            *(ElementType.INT16, ElementType.UINT16, ElementType.INT32),
            *(ElementType.INT4, ElementType.UINT4, ElementType.INT2, ElementType.UINT2),
            *(ElementType.FLOAT8E4M3FN, ElementType.FLOAT8E5M2, ElementType.FLOAT4E2M1),
            *(ElementType.INT8, ElementType.UINT8),
        )
    ),
)

examples(
    Dequantize,
    *(
        example(input=random(2, 4, dtype=dtype, low=low, high=high, quantization=quantization))
        for dtype, low, high, quantization in (
            (ElementType.INT8, -128, 128, Quantization((0.05,))),
            (ElementType.INT8, -128, 128, Quantization((0.05, 0.2), axis=0)),
            (ElementType.UINT8, 0, 256, Quantization((0.05,), (128,))),
            (ElementType.UINT8, 0, 256, Quantization((1, 2, 3, 4), (0, 1, 128, 255), axis=1)),
            (ElementType.INT16, -999, 999, Quantization((0.001,))),
            (ElementType.INT32, -(10**6), 10**6, Quantization((0.001, 0.5), axis=0)),
            (ElementType.INT4, -8, 8, Quantization((0.5,), (1,))),
            (ElementType.UINT4, 0, 16, Quantization((0.5,), (8,))),
            (ElementType.INT2, -2, 2, Quantization((0.5,))),
            (ElementType.UINT2, 0, 4, Quantization((0.5,), (1,))),
            (ElementType.FLOAT8E4M3FN, -9, 9, Quantization((0.5,))),
        )
    ),
)

_COARSE = Quantization((0.5,), (3,))

examples(
    Reinterpret,
    example(
        input=random(2, 3, dtype=ElementType.UINT8, high=256), scale=(0.05,), zero_point=(128.0,)
    ),
    example(input=random(2, 3, dtype=ElementType.INT8, low=-128, high=128), axis=0, scale=(0.5, 2)),
    example(
        input=random(2, 3, dtype=ElementType.INT8, low=-128, high=128, quantization=_COARSE),
        bare=True,
    ),
    example(
        input=random(2, 3, dtype=ElementType.INT8, low=-128, high=128, quantization=_COARSE),
        scale=(0.25,),
    ),
    example(input=random(2, dtype=ElementType.INT32, low=-(10**6), high=10**6), scale=(0.001,)),
)


def _steps(element_type: ElementType, *shape: int) -> Array:
    """Return constant integers from -8 to 7, or from 0 to 15 if unsigned."""
    low = 0 if element_type.value.startswith("u") else -8
    steps = np.arange(np.prod(shape)) * 7 % 16 + low
    return steps.astype(element_type.dtype).reshape(shape)


examples(
    DequantizeBlocks,
    example(
        input=random(6, 2, dtype=ElementType.INT8, low=-128, high=128),
        scale=random(2, 2),
        block_size=3,
    ),
    example(
        input=random(2, 5, 2, dtype=ElementType.UINT8, high=256),
        scale=random(2, 3, 2),
        zero_point=random(2, 3, 2, dtype=ElementType.UINT8, high=256),
        axis=-2,
        block_size=2,
    ),
    *(
        example(
            input=_steps(element_type, 32, 3),
            scale=np.linspace(0.1, 0.5, 6, dtype=np.float32).reshape(2, 3),
            zero_point=_steps(element_type, 2, 3),
            block_size=16,
        )
        for element_type in (ElementType.INT4, ElementType.UINT4, ElementType.INT8)
    ),
    example(
        input=_steps(ElementType.INT4, 3, 37),
        scale=np.linspace(0.1, 0.5, 9, dtype=np.float32).reshape(3, 3),
        axis=1,
        block_size=16,
    ),
)

examples(
    DynamicQuantize,
    example(input=random(2, 3)),
    example(input=random(2, 3, low=1, high=9)),
    example(input=random(5, low=-9, high=-1)),
    example(input=random(1, 2, 3, 4, low=-1, high=100)),
)
