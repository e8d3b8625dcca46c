"""Examples of pooling."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import Sample, example, examples, random
from crosschip.ops.standard.pooling import (
    AveragePool1D,
    AveragePool2D,
    AveragePool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
)


def _int8(*shape: int, scale: tuple[float, ...]) -> Sample:
    quantization = Quantization(scale)
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128, quantization=quantization)


def _uint8(*shape: int, quantization: Quantization) -> Sample:
    return random(*shape, dtype=ElementType.UINT8, low=0, high=256, quantization=quantization)


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
        input=_uint8(1, 2, 4, 5, quantization=Quantization((0.05,), (128,))),
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
        input=_int8(1, 2, 4, 5, scale=(0.05,)),
        kernel_shape=(2, 2),
        quantization=Quantization((0.05,)),
    ),
)

examples(
    AveragePool1D,
    example(input=random(2, 3, 9), kernel_shape=(3,), strides=(2,)),
    example(input=random(1, 2, 8), kernel_shape=(3,), pads=(1, 2)),
    example(
        input=random(1, 2, 8),
        kernel_shape=(2,),
        strides=(3,),
        pads=(1, 1),
        ceil_mode=True,
        count_include_pad=True,
        inside=True,
    ),
    example(input=random(1, 2, 8), kernel_shape=(3,), strides=(2,), auto_pad=1),
    example(input=random(1, 2, 9), kernel_shape=(2,), dilations=(3,), fuse_code=1),
    example(
        input=_uint8(1, 2, 7, quantization=Quantization((0.05,), (128,))),
        kernel_shape=(2,),
        quantization=Quantization((0.04,), (120,)),
    ),
)

examples(
    AveragePool3D,
    example(input=random(2, 3, 4, 5, 6), kernel_shape=(2, 3, 2), strides=(1, 2, 2)),
    example(input=random(1, 2, 4, 5, 4), kernel_shape=(3, 3, 2), pads=(1, 1, 0, 2, 1, 0)),
    example(
        input=random(1, 2, 5, 4, 6),
        kernel_shape=(2, 2, 3),
        strides=(3, 2, 2),
        pads=(1, 1, 0, 1, 1, 1),
        ceil_mode=True,
        count_include_pad=True,
        inside=True,
    ),
    example(input=random(1, 2, 4, 5, 6), kernel_shape=(3, 2, 3), strides=(2, 2, 1), auto_pad=1),
    example(input=random(1, 2, 4, 5, 6), kernel_shape=(2, 2, 2), dilations=(2, 1, 3), fuse_code=1),
    example(
        input=_uint8(1, 2, 3, 4, 3, quantization=Quantization((0.05,), (128,))),
        kernel_shape=(2, 2, 2),
        quantization=Quantization((0.04,), (120,)),
    ),
)

examples(
    MaxPool1D,
    example(input=random(2, 3, 9), kernel_shape=(3,), strides=(2,)),
    example(input=random(1, 2, 8), kernel_shape=(3,), pads=(1, 2), return_indices=True),
    example(
        input=random(1, 2, 8),
        kernel_shape=(2,),
        strides=(3,),
        pads=(1, 1),
        ceil_mode=True,
        inside=True,
        return_indices=True,
        return_indices_dtype=ElementType.INT64,
    ),
    example(input=random(1, 2, 8), kernel_shape=(3,), strides=(2,), auto_pad=3),
    example(input=random(1, 2, 9), kernel_shape=(2,), dilations=(3,), fuse_code=1),
    example(input=random(1, 2, 7, dtype=ElementType.UINT8, low=0, high=256), kernel_shape=(2,)),
    example(
        input=_int8(1, 2, 7, scale=(0.05,)),
        kernel_shape=(2,),
        quantization=Quantization((0.05,)),
    ),
)

examples(
    MaxPool3D,
    example(input=random(2, 3, 4, 5, 6), kernel_shape=(2, 3, 2), strides=(1, 2, 2)),
    example(
        input=random(1, 2, 4, 5, 4),
        kernel_shape=(3, 3, 2),
        pads=(1, 1, 0, 2, 1, 0),
        return_indices=True,
    ),
    example(
        input=random(1, 2, 5, 4, 6),
        kernel_shape=(2, 2, 3),
        strides=(3, 2, 2),
        pads=(1, 1, 0, 1, 1, 1),
        ceil_mode=True,
        inside=True,
        return_indices=True,
        return_indices_dtype=ElementType.INT64,
    ),
    example(input=random(1, 2, 4, 5, 6), kernel_shape=(3, 2, 3), strides=(2, 2, 1), auto_pad=3),
    example(input=random(1, 2, 4, 5, 6), kernel_shape=(2, 2, 2), dilations=(2, 1, 3), fuse_code=1),
    example(
        input=random(1, 2, 3, 4, 3, dtype=ElementType.UINT8, low=0, high=256),
        kernel_shape=(2, 2, 2),
    ),
    example(
        input=_int8(1, 2, 3, 4, 3, scale=(0.05,)),
        kernel_shape=(2, 2, 2),
        quantization=Quantization((0.05,)),
    ),
)
