"""Examples of joining and splitting."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.examples.common import INT8_CUBE
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack

_COARSE = random(2, 3, 1, dtype=ElementType.INT8, low=-3, high=4, quantization=Quantization((1,)))

examples(
    Concat,
    example(parts=[random(2, 3), random(2, 1), random(2, 3)], axis=1),
    example(parts=[random(2, 3), random(0, 3)], axis=-2),
    example(parts=[random(4, dtype=ElementType.INT64, low=-9, high=9)], axis=0),
    example(parts=[random(2, dtype=ElementType.BOOL), random(1, dtype=ElementType.BOOL)], axis=0),
    example(parts=[INT8_CUBE, INT8_CUBE], axis=1),
    example(parts=[INT8_CUBE, _COARSE], axis=2, quantization=Quantization((0.15,))),
)

examples(
    Stack,
    example(parts=[random(2, 3), random(2, 3)]),
    example(parts=[random(2, 3), random(2, 3), random(2, 3)], axis=-1),
    example(parts=[random(dtype=ElementType.INT32), random(dtype=ElementType.INT32)], axis=0),
    example(parts=[INT8_CUBE, INT8_CUBE], axis=1),
)

examples(
    Split,
    example(input=random(2, 6), axis=1, split=(1, 2, 3)),
    example(input=random(4, 3), axis=-2, split=(0, 4)),
    example(input=random(5, dtype=ElementType.INT32), axis=0, split=model_input([2, 3])),
    example(input=INT8_CUBE, axis=2, split=(1, 3)),
)

examples(
    Unstack,
    example(input=random(2, 3), num=2),
    example(input=random(2, 3, 4), axis=-2, num=3),
    example(input=random(3, dtype=ElementType.INT64, low=-9, high=9), num=3),
    example(input=INT8_CUBE, axis=1, num=3),
)

examples(
    Meshgrid,
    example(parts=[random(2), random(3)]),
    example(parts=[random(2), random(1), random(3)]),
    example(parts=[random(3, dtype=ElementType.INT64, low=-9, high=9)]),
)
