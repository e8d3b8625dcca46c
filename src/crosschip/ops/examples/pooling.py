"""Examples of pooling."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, random
from crosschip.ops.standard.pooling import (
    AdaptiveAveragePool2D,
    AdaptiveMaxPool2D,
    AveragePool2D,
    MaxPool2D,
)

examples(
    AveragePool2D,
    example(input=random(2, 3, 6, 7), kernel_shape=(2, 3), strides=(2, 1)),
    example(input=random(1, 2, 6, 7), kernel_shape=(3, 3), pads=(1, 1, 0, 2)),
    example(
        input=random(1, 2, 6, 7), kernel_shape=(3, 2), pads=(1, 1, 1, 0), count_include_pad=True
    ),
    example(input=random(1, 2, 7, 6), kernel_shape=(3, 3), strides=(2, 2), ceil_mode=True),
    example(
        input=random(1, 2, 6, 6),
        kernel_shape=(2, 2),
        strides=(3, 3),
        pads=(0, 1, 1, 1),
        ceil_mode=True,
        count_include_pad=True,
        inside=True,
    ),
    example(input=random(1, 2, 5, 6), kernel_shape=(3, 3), strides=(2, 2), auto_pad=1),
    example(input=random(1, 2, 6, 7), kernel_shape=(2, 2), dilations=(2, 3), fuse_code=1),
    example(
        input=random(
            1,
            2,
            4,
            5,
            dtype=ElementType.UINT8,
            low=0,
            high=256,
            quantization=Quantization((0.05,), (128,)),
        ),
        kernel_shape=(2, 2),
        quantization=Quantization((0.04,), (120,)),
    ),
)

examples(
    MaxPool2D,
    example(input=random(2, 3, 6, 7), kernel_shape=(2, 3), strides=(2, 1)),
    example(input=random(1, 2, 6, 7), kernel_shape=(3, 3), pads=(1, 1, 0, 2), return_indices=True),
    example(
        input=random(1, 2, 7, 6),
        kernel_shape=(2, 2),
        strides=(2, 2),
        ceil_mode=True,
        return_indices=True,
        return_indices_dtype=ElementType.INT64,
    ),
    example(
        input=random(1, 2, 6, 6),
        kernel_shape=(2, 2),
        strides=(3, 3),
        pads=(0, 1, 1, 1),
        ceil_mode=True,
        inside=True,
    ),
    example(input=random(1, 2, 5, 6), kernel_shape=(3, 3), strides=(2, 2), auto_pad=1),
    example(input=random(1, 2, 7, 8), kernel_shape=(2, 3), dilations=(2, 3), fuse_code=1),
    example(
        input=random(1, 2, 4, 4, dtype=ElementType.UINT8, low=0, high=256), kernel_shape=(2, 2)
    ),
    example(input=random(1, 2, 4, 4, dtype=ElementType.FLOAT16), kernel_shape=(2, 2), auto_pad=3),
    example(
        input=random(
            1,
            2,
            4,
            5,
            dtype=ElementType.INT8,
            low=-128,
            high=128,
            quantization=Quantization((0.05,)),
        ),
        kernel_shape=(2, 2),
        quantization=Quantization((0.05,)),
    ),
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
