"""Examples of resizing."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, random
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest

examples(
    ResizeNearest,
    example(input=random(2, 3, 4, 5), shape=(6, 8)),
    example(input=random(1, 2, 4, 5), scales=(2.0, 0.5)),
    example(input=random(1, 2, 4, 5), scales=(1.5, 2.6), align_corners=True),
    example(input=random(1, 2, 4, 5), shape=(7, 3), align_mode=0, rounding=1),
    example(input=random(1, 2, 4, 5), scales=(0.6, 1.3), align_mode=3, rounding=4),
    example(input=random(1, 2, 4, 5), shape=(1, 9), align_mode=2, rounding=2),
    example(input=random(1, 2, 4, 5), shape=(3, 9), align_mode=4, rounding=3),
    example(
        input=random(1, 2, 4, 5),
        shape=(3, 4),
        align_mode=5,
        roi=(0.2, -0.3, 0.7, 1.1),
        extrapolation_value=9.0,
        rounding=1,
    ),
    example(input=random(1, 2, 4, 5, dtype=ElementType.INT32, low=-9, high=9), shape=(8, 5)),
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
        shape=(8, 10),
    ),
    example(
        input=random(
            1,
            2,
            4,
            5,
            dtype=ElementType.UINT8,
            low=0,
            high=256,
            quantization=Quantization((0.05,), (100,)),
        ),
        shape=(3, 4),
        align_mode=5,
        roi=(-0.2, -0.3, 0.7, 1.1),
        extrapolation_value=2.0,
    ),
)

examples(
    ResizeLinear,
    example(input=random(2, 3, 4, 5), shape=(6, 8)),
    example(input=random(1, 2, 4, 5), scales=(2.0, 0.5), align_mode=1),
    example(input=random(1, 2, 4, 5), scales=(1.5, 2.6), align_corners=True),
    example(input=random(1, 2, 4, 5), shape=(1, 9), align_mode=2),
    example(input=random(1, 2, 4, 5), scales=(0.6, 1.3), align_mode=3),
    example(input=random(1, 2, 7, 9), shape=(3, 4), antialias=True),
    example(input=random(1, 2, 7, 9), shape=(3, 4), antialias=True, exclude_outside=True),
    example(
        input=random(1, 2, 4, 5),
        shape=(3, 4),
        align_mode=5,
        roi=(0.2, -0.3, 0.7, 1.1),
        extrapolation_value=9.0,
    ),
    example(
        input=random(
            1,
            2,
            4,
            5,
            dtype=ElementType.UINT8,
            low=0,
            high=256,
            quantization=Quantization((0.05,), (100,)),
        ),
        shape=(8, 10),
        quantization=Quantization((0.05,), (100,)),
    ),
)

examples(
    ResizeCubic,
    example(input=random(2, 3, 4, 5), shape=(6, 8)),
    example(input=random(1, 2, 4, 5), scales=(2.0, 0.5), align_mode=1, coefficient=-0.5),
    example(input=random(1, 2, 4, 5), scales=(1.5, 2.6), align_corners=True),
    example(input=random(1, 2, 4, 5), shape=(6, 3), exclude_outside=True),
    example(input=random(1, 2, 9, 7), shape=(3, 4), antialias=True),
    example(input=random(1, 2, 9, 7), shape=(3, 4), antialias=True, exclude_outside=True),
    example(
        input=random(1, 2, 4, 5),
        shape=(3, 4),
        align_mode=5,
        roi=(0.2, -0.3, 0.7, 1.1),
        extrapolation_value=9.0,
    ),
)
