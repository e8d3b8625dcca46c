"""Examples of pooling over grids."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, random
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)

examples(
    AdaptiveAveragePool2D,
    example(input=random(2, 3, 6, 8), output_shape=(3, 2)),
    example(input=random(1, 2, 5, 7), output_shape=(3, 4)),
    example(input=random(1, 2, 3, 2), output_shape=(5, 3)),
    example(input=random(1, 2, 5, 7), output_shape=(1, 1)),
    example(
        input=random(
            1,
            2,
            4,
            6,
            dtype=ElementType.INT16,
            low=-30000,
            high=30000,
            quantization=Quantization((0.0005,)),
        ),
        output_shape=(2, 3),
        quantization=Quantization((0.0004,)),
    ),
)

examples(
    AdaptiveMaxPool2D,
    example(input=random(2, 3, 6, 8), output_shape=(3, 2)),
    example(input=random(2, 3, 6, 8), output_shape=(3, 2), return_indices=True),
    example(input=random(1, 2, 5, 7), output_shape=(3, 4)),
    example(
        input=random(1, 2, 5, 7),
        output_shape=(3, 4),
        return_indices=True,
        return_indices_dtype=ElementType.INT64,
    ),
    example(input=random(1, 2, 3, 2), output_shape=(5, 3), return_indices=True),
    example(input=random(1, 2, 5, 7), output_shape=(1, 1)),
    example(
        input=random(
            1,
            2,
            4,
            6,
            dtype=ElementType.INT8,
            low=-128,
            high=128,
            quantization=Quantization((0.05,)),
        ),
        output_shape=(2, 3),
        quantization=Quantization((0.05,)),
    ),
)

examples(
    AdaptiveAveragePool1D,
    example(input=random(2, 3, 8), output_shape=(4,)),
    example(input=random(1, 2, 7), output_shape=(3,)),
    example(input=random(1, 2, 3), output_shape=(5,)),
    example(input=random(1, 2, 7), output_shape=(1,)),
)

examples(
    AdaptiveAveragePool3D,
    example(input=random(2, 3, 4, 6, 8), output_shape=(2, 3, 2)),
    example(input=random(1, 2, 4, 5, 7), output_shape=(3, 3, 4)),
    example(input=random(1, 2, 2, 3, 2), output_shape=(3, 5, 3)),
    example(input=random(1, 2, 4, 5, 7), output_shape=(1, 1, 1)),
)

examples(
    AdaptiveMaxPool1D,
    example(input=random(2, 3, 8), output_shape=(4,)),
    example(input=random(1, 2, 7), output_shape=(3,), return_indices=True),
    example(
        input=random(1, 2, 3),
        output_shape=(5,),
        return_indices=True,
        return_indices_dtype=ElementType.INT64,
    ),
    example(input=random(1, 2, 7), output_shape=(1,)),
)

examples(
    AdaptiveMaxPool3D,
    example(input=random(2, 3, 4, 6, 8), output_shape=(2, 3, 2)),
    example(input=random(1, 2, 4, 5, 7), output_shape=(3, 3, 4), return_indices=True),
    example(
        input=random(1, 2, 2, 3, 2),
        output_shape=(3, 5, 3),
        return_indices=True,
        return_indices_dtype=ElementType.INT64,
    ),
    example(input=random(1, 2, 4, 5, 7), output_shape=(1, 1, 1)),
)
