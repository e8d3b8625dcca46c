"""Examples of products of 8-bit integers."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, ElementType, Quantization
from crosschip.ops.definition.examples import Sample, example, examples, random
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.integers import (
    Conv1DInteger,
    Conv2DInteger,
    Conv3DInteger,
    MatMulInteger,
)


def _signed(*shape: int) -> Sample:
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128)


def _unsigned(*shape: int) -> Sample:
    return random(*shape, dtype=ElementType.UINT8, low=0, high=256)


def _constant(*shape: int) -> Array:
    """Return constant weights from -119 to 119."""
    return (np.arange(np.prod(shape)) * 37 % 239 - 119).astype(np.int8).reshape(shape)


_ZERO = np.array(3, np.int8)
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
    example(x=_unsigned(2, 3, 4), y=_constant(4, 5), x_zero_point=_unsigned()),
    example(x=_signed(3, 900), y=_constant(900, 2), y_zero_point=_ZERO),
    example(
        x=_unsigned(3, 4),
        y=_constant(4, 3),
        x_zero_point=_unsigned(3, 1),
        y_zero_point=np.array([5, -3, 0], np.int8),
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
    example(
        input=_unsigned(2, 2, 7, 6),
        filter=_constant(4, 2, 3, 2),
        input_zero_point=_unsigned(),
        filter_zero_point=np.array([1, -2, 0, 4], np.int8),
        strides=(2, 1),
        dilations=(1, 2),
        pads=(2, 0, 1, 1),
    ),
    example(
        input=_unsigned(1, 6, 4, 4),
        filter=_constant(6, 1, 3, 3),
        input_zero_point=_unsigned(),
        group=6,
        auto_pad=AutoPad.SAME,
    ),
    example(
        input=_unsigned(1, 1200, 2, 2),
        filter=_constant(2, 600, 1, 1),
        input_zero_point=_unsigned(),
        group=2,
    ),
)

examples(
    Conv1DInteger,
    example(input=_unsigned(1, 3, 7), filter=_signed(2, 3, 3), pads=(1, 1), strides=(2,)),
    example(
        input=_signed(2, 4, 6),
        filter=_signed(4, 2, 3),
        filter_zero_point=_signed(4),
        group=2,
        auto_pad=AutoPad.SAME,
    ),
    example(
        input=_unsigned(2, 2, 9),
        filter=_constant(4, 2, 3),
        input_zero_point=_unsigned(),
        filter_zero_point=np.array([1, -2, 0, 4], np.int8),
        strides=(2,),
        dilations=(2,),
        pads=(2, 0),
    ),
)

examples(
    Conv3DInteger,
    example(input=_unsigned(1, 3, 4, 3, 5), filter=_signed(2, 3, 3, 2, 3), pads=(1, 1, 0, 1, 1, 0)),
    example(
        input=_unsigned(1, 4, 3, 4, 3),
        filter=_constant(4, 2, 2, 2, 2),
        input_zero_point=_unsigned(),
        filter_zero_point=np.array([1, -2, 0, 4], np.int8),
        group=2,
        strides=(1, 2, 1),
        dilations=(2, 1, 1),
        pads=(1, 0, 1, 1, 0, 1),
    ),
)
