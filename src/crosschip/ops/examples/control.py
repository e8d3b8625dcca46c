"""Examples of control of a run."""

from __future__ import annotations

from crosschip.ir import ElementType
from crosschip.ops.definition.examples import example, examples, given, random
from crosschip.ops.standard.control import Assert

examples(
    Assert,
    example(condition=given([True, True]), data=[random(2, 3)]),
    example(
        condition=given(True),
        data=[random(4, dtype=ElementType.INT64, low=-9, high=9), given([1, 2])],
        summarize=-1,
    ),
)
