"""Examples of conversions of element types."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.standard.conversion import Assign, BitCast, Cast

examples(
    Assign,
    example(input=random(2, 0, 3)),
    example(input=random(dtype=ElementType.BOOL)),
    example(
        input=random(3, dtype=ElementType.INT8, low=-9, high=9, quantization=Quantization((0.1,)))
    ),
)

_NARROW_CASTS = (
    (ElementType.BFLOAT16, 100),
    (ElementType.FLOAT8E4M3FN, 1000),
    (ElementType.FLOAT8E5M2, 100),
    (ElementType.FLOAT4E2M1, 5),
    (ElementType.INT4, 8),
)

examples(
    Cast,
    example(input=random(2, 3, low=-9, high=9), dtype=ElementType.INT32),
    example(input=model_input([0.0, -0.0, 0.3, -2.0]), dtype=ElementType.BOOL),
    example(input=random(6, dtype=ElementType.BOOL), dtype=ElementType.FLOAT32),
    example(input=random(8, dtype=ElementType.INT32, low=-999, high=999), dtype=ElementType.UINT8),
    example(input=random(5, dtype=ElementType.INT64), dtype=ElementType.FLOAT16),
    *(example(input=random(2, 9, low=-n, high=n), dtype=dtype) for dtype, n in _NARROW_CASTS),
    example(input=model_input([0.1, 3.0, 1e30]), dtype=ElementType.FLOAT8E8M0),
    example(input=random(7, low=-999, high=999), dtype=ElementType.FLOAT8E4M3FNUZ, saturate=False),
    example(
        input=random(
            9, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.5,))
        ),
        dtype=ElementType.INT32,
    ),
)

examples(
    BitCast,
    example(input=random(2, 3), dtype=ElementType.INT32),
    example(input=random(5, dtype=ElementType.INT64, low=-9, high=9), dtype=ElementType.UINT64),
    example(input=random(5, dtype=ElementType.BFLOAT16), dtype=ElementType.UINT16),
    example(input=random(5, dtype=ElementType.INT8, low=-9, high=9), dtype=ElementType.UINT8),
)
