"""Examples of operators that repeat, shift, reverse or mask."""

from __future__ import annotations

from crosschip.ir import ElementType
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.examples.common import INT8_CUBE
from crosschip.ops.standard.rearranging import ReverseSequence, Roll, Tile, Trilu

examples(
    Tile,
    example(input=random(2, 3), repeats=(2, 1)),
    example(input=random(2, 1, 3), repeats=(3,)),
    example(input=random(3, dtype=ElementType.INT32, low=-9, high=9), repeats=(2, 2)),
    example(input=random(2, 3, dtype=ElementType.BOOL), repeats=(0, 2)),
    example(input=random(2, 3), repeats=model_input([1, 2])),
    example(input=INT8_CUBE, repeats=(1, 2, 2)),
)

examples(
    Roll,
    example(input=random(4, 5), shifts=(2,), axes=(1,)),
    example(input=random(4, 5), shifts=(-1, 7), axes=(-1, 0)),
    example(input=random(4, 5, dtype=ElementType.INT64, low=-9, high=9), shifts=(3,)),
    example(input=INT8_CUBE, shifts=(1,), axes=(2,)),
)

examples(
    ReverseSequence,
    example(input=random(4, 3), lengths=model_input([4, 0, 2])),
    example(input=random(2, 4, 3), lengths=model_input([1, 3]), time_axis=1, batch_axis=0),
    example(
        input=random(3, 2, 4, dtype=ElementType.INT32, low=-9, high=9),
        lengths=model_input([3, 1, 4]),
        time_axis=-1,
        batch_axis=0,
    ),
)

examples(
    Trilu,
    example(input=random(3, 4)),
    example(input=random(2, 3, 3), k=-1),
    example(input=random(4, 3), k=1, upper=False),
    example(input=random(2, 4, 4, dtype=ElementType.INT64, low=-9, high=9), upper=False),
    example(input=random(3, 3, dtype=ElementType.BOOL), k=9),
)
