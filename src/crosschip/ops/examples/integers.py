"""Examples of products of bytes."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import Sample, example, examples, random
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.integers import Conv2DInteger, MatMulInteger


def _signed(*shape: int) -> Sample:
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128)


def _unsigned(*shape: int) -> Sample:
    return random(*shape, dtype=ElementType.UINT8, low=0, high=256)


_QUANTIZED = Quantization((0.1,), (7,))

examples(
    MatMulInteger,
    example(x=_unsigned(3, 4), y=_signed(4, 5)),
    example(
        x=_unsigned(3, 4), y=_unsigned(4, 5), x_zero_point=_unsigned(), y_zero_point=_unsigned()
    ),
    example(x=_signed(2, 1, 3, 4), y=_signed(5, 4, 2), y_zero_point=_signed(2)),
    example(x=_unsigned(3, 4), y=_signed(4, 2), x_zero_point=_unsigned(3, 1)),
    example(x=_unsigned(2, 600), y=_signed(600, 2), x_zero_point=_unsigned()),
    example(x=_unsigned(2, 9000), y=_unsigned(9000, 2)),
    example(x=_unsigned(4), y=_signed(4), y_zero_point=_signed()),
    example(
        x=random(3, 4, dtype=ElementType.UINT8, high=256, quantization=_QUANTIZED),
        y=_signed(4, 2),
        x_zero_point=_unsigned(),
    ),
)

examples(
    Conv2DInteger,
    example(input=_unsigned(1, 3, 5, 5), filter=_signed(2, 3, 3, 3)),
    example(
        input=_unsigned(1, 3, 5, 5),
        filter=_unsigned(2, 3, 3, 3),
        input_zero_point=_unsigned(),
        filter_zero_point=_unsigned(),
        pads=(1, 1, 1, 1),
        strides=(2, 2),
    ),
    example(
        input=_signed(2, 4, 6, 5),
        filter=_signed(4, 2, 3, 2),
        filter_zero_point=_signed(4),
        group=2,
        auto_pad=AutoPad.SAME,
    ),
    example(
        input=_unsigned(1, 40, 4, 4),
        filter=_signed(3, 40, 3, 3),
        input_zero_point=_unsigned(),
        dilations=(1, 1),
        pads=(1, 0, 0, 1),
    ),
)
