"""Examples of padding."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.standard.padding import Pad, PadMode

examples(
    Pad,
    example(input=random(2, 3), pads=(0, 1, 2, 0)),
    example(input=random(2, 3), pads=(1, 1, -1, 2), value=model_input([0.5])),
    example(input=random(2, 4), pads=(1, 0, 2, 3), mode=PadMode.REFLECT),
    example(input=random(1, 2, 4), pads=(0, 0, 1, 0, 2, 3), mode=PadMode.REPLICATE),
    example(input=random(2, 4), pads=(0, 0, 1, 1), mode=PadMode.EDGE),
    example(input=random(2, 3), pads=(1, 2, 3, 0), mode=PadMode.SYMMETRIC),
    example(input=random(2, 3), pads=(2, 1, 0, 2), mode=PadMode.WRAP),
    example(
        input=random(3, dtype=ElementType.INT64, low=-9, high=9), pads=(2, 1), value=np.int64(7)
    ),
    example(input=random(2, 2), pads=model_input([1, 0, 0, 2])),
    example(
        input=random(
            *(2, 3), dtype=ElementType.UINT8, high=256, quantization=Quantization((0.1,), (128,))
        ),
        pads=(0, 1, 1, 0),
    ),
)
