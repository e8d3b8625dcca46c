"""Inputs and examples that operators of several families share."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import Example, example, random


def examples_in(low: float, high: float) -> tuple[Example, ...]:
    """Return examples of a function on reals in [low, high): several ranks, narrow, quantized."""
    least = min(low, 0.0)
    scale = (high - least) / 255
    zero_point = round(-least / scale)
    return (
        example(input=random(2, 3, 4, low=low, high=high)),
        example(input=random(low=low, high=high)),
        example(input=random(7, dtype=ElementType.FLOAT16, low=low, high=high)),
        example(
            input=random(
                *(3, 5),
                dtype=ElementType.UINT8,
                low=zero_point + max(low, 0.0) / scale,
                high=256,
                quantization=Quantization((scale,), (zero_point,)),
            ),
            quantization=Quantization((0.05,), (100,)),
        ),
    )


INT8_ROWS = random(
    3, 8, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.25,))
)

INT8_CUBE = random(
    2, 3, 4, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
)

INT8_BY_CHANNEL = random(
    *(2, 3, 4),
    dtype=ElementType.INT8,
    low=-128,
    high=128,
    quantization=Quantization((0.5, 0.25, 0.1), axis=1),
)
