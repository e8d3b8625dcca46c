"""Examples of convolutions."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import Sample, example, examples, random
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)


def _int8(*shape: int, scale: tuple[float, ...], axis: int | None = None) -> Sample:
    quantization = Quantization(scale, axis=axis)
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128, quantization=quantization)


def _uint8(*shape: int, quantization: Quantization) -> Sample:
    return random(*shape, dtype=ElementType.UINT8, low=0, high=256, quantization=quantization)


def _int32(size: int, scale: tuple[float, ...], axis: int | None = None) -> Sample:
    quantization = Quantization(scale, axis=axis)
    return random(size, dtype=ElementType.INT32, low=-900, high=900, quantization=quantization)


examples(
    Conv2D,
    example(input=random(2, 3, 5, 6), filter=random(4, 3, 3, 2), bias=random(4)),
    example(
        input=random(1, 4, 6, 7),
        filter=random(6, 2, 2, 3),
        pads=(1, 0, 2, 1),
        strides=(2, 1),
        group=2,
        dilations=(1, 2),
    ),
    example(
        input=random(1, 3, 5, 5), filter=random(6, 1, 3, 3), auto_pad=1, strides=(2, 2), group=3
    ),
    example(input=random(1, 2, 4, 5), filter=random(2, 2, 2, 2), auto_pad=3, fuse_code=1),
    example(input=random(1, 2, 4, 5), filter=random(2, 2, 2, 2), auto_pad=2, pads=(1, 1, 1, 1)),
    example(
        input=random(1, 2, 4, 4, dtype=ElementType.FLOAT16),
        filter=random(2, 2, 3, 3, dtype=ElementType.FLOAT16),
    ),
    example(
        input=_int8(1, 2, 5, 5, scale=(0.05,)),
        filter=_int8(3, 2, 3, 3, scale=(0.02,)),
        bias=_int32(3, scale=(0.001,)),
        pads=(1, 1, 1, 1),
        fuse_code=1,
        quantization=Quantization((0.5,)),
    ),
    example(
        input=_int8(1, 2, 5, 5, scale=(0.05,)),
        filter=_int8(3, 2, 3, 3, scale=(0.02, 0.01, 0.04), axis=0),
        bias=_int32(3, scale=(0.001, 0.0005, 0.002), axis=0),
        quantization=Quantization((0.5,)),
    ),
    example(
        input=_uint8(1, 2, 5, 5, quantization=Quantization((0.05,), (128,))),
        filter=_uint8(
            *(3, 2, 2, 2), quantization=Quantization((0.02, 0.01, 0.04), (128, 100, 140), 0)
        ),
        quantization=Quantization((0.3,), (110,)),
    ),
    example(input=random(2, 1, 6, 5), filter=random(3, 1, 3, 3), strides=(1, 3)),
    example(
        input=random(1, 2, 4, 5),
        filter=np.linspace(-1, 1, 36, dtype=np.float32).reshape(2, 2, 3, 3),
    ),
)

examples(
    Conv2DTranspose,
    example(input=random(2, 3, 4, 5), filter=random(3, 2, 3, 2), bias=random(2)),
    example(
        input=random(1, 4, 3, 4),
        filter=random(4, 3, 3, 3),
        pads=(1, 0, 1, 2),
        strides=(2, 3),
        group=2,
        dilations=(1, 2),
        output_padding=(1, 0),
    ),
    example(input=random(1, 2, 3, 4), filter=random(2, 2, 3, 3), auto_pad=1, strides=(2, 2)),
    example(input=random(1, 2, 3, 4), filter=random(2, 2, 4, 2), auto_pad=3, strides=(3, 1)),
    example(
        input=random(1, 2, 3, 4),
        filter=random(2, 2, 3, 3),
        pads=(1, 1, 1, 1),
        strides=(2, 2),
        output_shape=(6, 7),
        fuse_code=1,
    ),
    example(
        input=_int8(1, 2, 3, 3, scale=(0.05,)),
        filter=_int8(2, 3, 3, 3, scale=(0.02,)),
        bias=_int32(3, scale=(0.001,)),
        strides=(2, 2),
        quantization=Quantization((0.5,)),
    ),
)

examples(
    Conv1D,
    example(input=random(2, 3, 9), filter=random(4, 3, 3), bias=random(4)),
    example(
        input=random(1, 4, 8),
        filter=random(6, 2, 2),
        pads=(1, 2),
        strides=(2,),
        group=2,
        dilations=(3,),
        fuse_code=1,
    ),
    example(input=random(1, 3, 7), filter=random(6, 1, 3), auto_pad=1, strides=(2,), group=3),
    example(input=random(1, 2, 6), filter=random(2, 2, 2), auto_pad=3),
    example(input=random(2, 1, 9), filter=random(3, 1, 3), strides=(3,), auto_pad=2),
    example(
        input=_int8(1, 2, 8, scale=(0.05,)),
        filter=_int8(3, 2, 3, scale=(0.02, 0.01, 0.04), axis=0),
        bias=_int32(3, scale=(0.001, 0.0005, 0.002), axis=0),
        pads=(1, 1),
        quantization=Quantization((0.5,)),
    ),
    example(
        input=random(1, 2, 6), filter=np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 2, 3)
    ),
)

examples(
    Conv3D,
    example(input=random(2, 2, 4, 5, 3), filter=random(3, 2, 2, 3, 2), bias=random(3)),
    example(
        input=random(1, 4, 5, 4, 6),
        filter=random(4, 2, 2, 2, 3),
        pads=(1, 0, 0, 1, 2, 1),
        strides=(2, 1, 3),
        group=2,
        dilations=(2, 1, 1),
        fuse_code=1,
    ),
    example(
        input=random(1, 2, 3, 4, 5),
        filter=random(4, 1, 2, 2, 3),
        auto_pad=1,
        strides=(2, 1, 2),
        group=2,
    ),
    example(
        input=_int8(1, 2, 3, 4, 4, scale=(0.05,)),
        filter=_int8(3, 2, 2, 3, 2, scale=(0.02,)),
        bias=_int32(3, scale=(0.001,)),
        quantization=Quantization((0.5,)),
    ),
)

examples(
    Conv1DTranspose,
    example(input=random(2, 3, 5), filter=random(3, 2, 3), bias=random(2)),
    example(
        input=random(1, 4, 4),
        filter=random(4, 3, 3),
        pads=(1, 2),
        strides=(3,),
        group=2,
        dilations=(2,),
        output_padding=(1,),
        fuse_code=1,
    ),
    example(input=random(1, 2, 4), filter=random(2, 2, 3), auto_pad=1, strides=(2,)),
    example(
        input=random(1, 2, 4), filter=random(2, 2, 3), pads=(1, 1), strides=(2,), output_shape=(7,)
    ),
    example(
        input=_int8(1, 2, 4, scale=(0.05,)),
        filter=_int8(2, 3, 3, scale=(0.02,)),
        bias=_int32(3, scale=(0.001,)),
        strides=(2,),
        quantization=Quantization((0.5,)),
    ),
)

examples(
    Conv3DTranspose,
    example(input=random(2, 3, 2, 4, 3), filter=random(3, 2, 2, 3, 2), bias=random(2)),
    example(
        input=random(1, 4, 3, 3, 2),
        filter=random(4, 1, 2, 3, 3),
        pads=(1, 0, 1, 1, 0, 2),
        strides=(2, 1, 2),
        group=2,
        dilations=(1, 2, 1),
        output_padding=(1, 0, 1),
        fuse_code=1,
    ),
    example(
        input=random(1, 2, 2, 3, 2), filter=random(2, 2, 3, 2, 3), auto_pad=3, strides=(2, 1, 2)
    ),
)
