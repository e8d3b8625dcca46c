"""Examples of matrix operators."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType, Quantization
from crosschip.ops.definition.examples import Sample, example, examples, random
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.matrix import Det, FullyConnected, MatMul, MatMulNBits

_EIGHTH, _HALF = Quantization((0.125,)), Quantization((0.5,))

_SKEWED = Quantization((0.1,), (120,))

_CHANNELS = Quantization((0.25, 0.5, 0.125), axis=0)


def _bytes(*shape: int, quantization: Quantization) -> Sample:
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128, quantization=quantization)


examples(
    MatMul,
    example(x=random(3, 4), y=random(4, 5)),
    example(x=random(2, 1, 4, 3), y=random(5, 6, 4), transpose_x=True, transpose_y=True),
    example(x=random(4), y=random(2, 4, 3)),
    example(x=random(2, 3, 4), y=random(4)),
    example(x=random(4), y=random(4)),
    example(x=random(2, 3, dtype=ElementType.FLOAT16), y=random(3, 2, dtype=ElementType.FLOAT16)),
    example(
        x=random(3, 4, dtype=ElementType.INT32, low=-9, high=9),
        y=random(4, 2, dtype=ElementType.INT32, low=-9, high=9),
    ),
    example(
        x=_bytes(3, 4, quantization=_EIGHTH),
        y=_bytes(4, 2, quantization=_HALF),
        quantization=Quantization((4.0,)),
    ),
    example(
        x=random(3, 4, dtype=ElementType.UINT8, high=256, quantization=_SKEWED),
        y=random(4, 2, dtype=ElementType.UINT8, high=256, quantization=_SKEWED),
    ),
)

examples(
    FullyConnected,
    example(input=random(2, 4), weight=random(3, 4), bias=random(3)),
    example(input=random(2, 4), weight=random(3, 4), fuse_code=Fuse.RELU),
    example(input=random(2, 3, 4), weight=random(5, 6), bias=random(5), fuse_code=Fuse.RELU6),
    example(
        input=random(2, 4, dtype=ElementType.FLOAT16),
        weight=random(3, 4, dtype=ElementType.FLOAT16),
    ),
    example(
        input=_bytes(2, 4, quantization=_EIGHTH),
        weight=_bytes(3, 4, quantization=_HALF),
        bias=random(
            *(3,), dtype=ElementType.INT32, low=-999, high=999, quantization=Quantization((0.0625,))
        ),
        quantization=Quantization((4.0,)),
    ),
    example(
        input=_bytes(2, 4, quantization=_EIGHTH),
        weight=_bytes(3, 4, quantization=_CHANNELS),
        bias=random(
            *(3,),
            dtype=ElementType.INT32,
            low=-999,
            high=999,
            quantization=Quantization((0.03125, 0.0625, 0.015625), axis=0),
        ),
        fuse_code=Fuse.RELU,
        quantization=Quantization((4.0,)),
    ),
)

examples(
    Det,
    example(input=random(2, 2)),
    example(input=random(3, 1, 1)),
    example(input=random(2, 3, 4, 4)),
    example(input=random(6, 6)),
)


def _packed(*shape: int) -> Sample:
    return random(*shape, dtype=ElementType.UINT8, low=0, high=256)


def _bytes_of(*shape: int) -> Array:
    """Return constant pseudorandom 8-bit integers."""
    return (np.arange(np.prod(shape)) * 53 % 251).astype(np.uint8).reshape(shape)


_SCALE = np.linspace(0.01, 0.3, 12, dtype=np.float32).reshape(4, 3)

examples(
    MatMulNBits,
    example(x=random(3, 32), weight=_packed(4, 2, 8), scale=random(4, 2), size=32, block_size=16),
    example(
        x=random(2, 3, 40),
        weight=_packed(4, 3, 8),
        scale=random(4, 3),
        zero_point=_packed(4, 2),
        bias=random(4),
        size=40,
        block_size=16,
    ),
    example(
        x=random(3, 16),
        weight=_packed(2, 1, 16),
        scale=random(2, 1),
        zero_point=random(2, 1, high=99),
        size=16,
        block_size=16,
        bits=8,
    ),
    example(
        x=random(32, dtype=ElementType.FLOAT16),
        weight=_packed(3, 2, 4),
        scale=random(3, 2, dtype=ElementType.FLOAT16),
        size=32,
        block_size=16,
        bits=2,
    ),
    example(x=random(2, 3, 40), weight=_bytes_of(4, 3, 8), scale=_SCALE, size=40, block_size=16),
    example(
        x=random(3, 40),
        weight=_bytes_of(4, 3, 8),
        scale=_SCALE,
        zero_point=_bytes_of(4, 2),
        bias=np.array([0.5, -1, 0, 2], np.float32),
        size=40,
        block_size=16,
    ),
    example(
        x=random(3, 48),
        weight=_bytes_of(4, 3, 16),
        scale=_SCALE,
        zero_point=_SCALE * 400,
        size=48,
        block_size=16,
        bits=8,
    ),
)
