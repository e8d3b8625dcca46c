"""Examples of assertions."""

from __future__ import annotations

from crosschip.ir import ElementType
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.standard.control import Assert

examples(
    Assert,
    example(condition=model_input([True, True]), data=[random(2, 3)]),
    example(
        condition=model_input(True),
        data=[random(4, dtype=ElementType.INT64, low=-9, high=9), model_input([1, 2])],
        summarize=-1,
    ),
)
