"""Examples of slicing."""

from __future__ import annotations

from crosschip.ir import ElementType
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.examples.common import INT8_BY_CHANNEL, INT8_CUBE
from crosschip.ops.standard.slicing import Crop, Slice, StridedSlice

examples(
    Slice,
    example(input=random(4, 5), starts=(1, 0), ends=(3, 4)),
    example(input=random(4, 5), axes=(-1,), starts=(-3,), ends=(2**31 - 1,), steps=(2,)),
    example(input=random(4, 5), axes=(1,), starts=(4,), ends=(-(2**31),), steps=(-1,)),
    example(input=random(4, 5, dtype=ElementType.INT32), axes=(0,), starts=(2,), ends=(2,)),
    example(input=random(4, 5), axes=(0,), starts=model_input([1]), ends=model_input([9])),
    example(input=INT8_BY_CHANNEL, axes=(2,), starts=(1,), ends=(3,)),
    example(input=INT8_CUBE, axes=(1,), starts=(1,), ends=(3,)),
)

examples(
    StridedSlice,
    example(input=random(4, 5), begin=(1, 0), end=(3, 5), strides=(1, 2)),
    example(input=random(4, 5), begin=(-1, 4), end=(0, 0), strides=(-1, -2), end_mask=2),
    example(input=random(4, 5), begin=(2,), end=(0,), strides=(1,), begin_mask=1, end_mask=1),
    example(
        input=random(2, 3, 4, 5),
        begin=(1, 0, 0, 1),
        end=(2, 0, 0, 3),
        strides=(1, 1, 1, 1),
        ellipsis_mask=2,
        new_axis_mask=4,
        shrink_axis_mask=1,
    ),
    example(
        input=random(4, 5, dtype=ElementType.INT32, low=-9, high=9),
        begin=(0, -1),
        end=(0, 0),
        strides=(1, 1),
        end_mask=1,
        shrink_axis_mask=2,
    ),
    example(input=random(4, 5), begin=model_input([1, 1]), end=model_input([3, 9]), strides=(1, 2)),
    example(input=INT8_CUBE, begin=(0, 1), end=(2, 3), strides=(1, 1)),
)

examples(
    Crop,
    example(input=random(1, 2, 4, 5), shape=(2, 3), offset=(1, 2)),
    example(input=random(1, 2, 4, 5), shape=(1, 2, 3, 3), offset=(1,)),
    example(input=random(3, 4, dtype=ElementType.INT64, low=-9, high=9), shape=(2,), axis=-1),
    example(input=INT8_CUBE, shape=(1, 2, 2), axis=0, offset=(1, 0, 1)),
)
