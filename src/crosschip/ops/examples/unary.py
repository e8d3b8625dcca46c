"""Examples of functions of one number."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.examples.common import examples_in
from crosschip.ops.standard.unary import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Cos,
    Cosh,
    Erf,
    Exp,
    Floor,
    IsInf,
    IsNaN,
    Log,
    Neg,
    Reciprocal,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Square,
    Tan,
)

INTEGERS_TOO = (
    *examples_in(-3, 3),
    example(input=random(2, 3, dtype=ElementType.INT32, low=-9, high=9)),
    example(input=model_input(np.array([-128, -1, 0, 127], np.int8))),
    example(input=model_input(np.array([0, 1, 255], np.uint8))),
    example(
        input=random(
            2, 3, dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.05,))
        ),
        quantization=Quantization((0.1,)),
    ),
    example(
        input=random(
            2, 3, dtype=ElementType.INT16, low=-999, high=999, quantization=Quantization((0.01,))
        ),
        quantization=Quantization((0.02,)),
    ),
)
"""Examples of a function that also takes integers."""

examples(Abs, *INTEGERS_TOO)

examples(Neg, *INTEGERS_TOO)

examples(Sign, *INTEGERS_TOO)

examples(Square, *INTEGERS_TOO)

examples(Sqrt, *examples_in(0, 9))

examples(Rsqrt, *examples_in(0.1, 9))

examples(Reciprocal, *examples_in(0.1, 9))

examples(Exp, *examples_in(-3, 3))

examples(Log, *examples_in(0.1, 9))

examples(Erf, *examples_in(-3, 3))

_FLOOR = (*examples_in(-9, 9), example(input=model_input([-1.5, -0.0, 0.5, 2.0, np.inf])))

examples(Floor, *_FLOOR)

examples(Ceil, *_FLOOR)

examples(Round, *examples_in(-9, 9), example(input=model_input([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])))

_PREDICATE = (
    example(input=model_input([np.nan, np.inf, -np.inf, 0.0, 3e38])),
    example(input=model_input(np.array([np.nan, np.inf, -np.inf, 65504], np.float16))),
    example(input=random(2, 3, 4)),
)

examples(IsNaN, *_PREDICATE)

examples(
    IsInf,
    *_PREDICATE,
    *(
        dict(_PREDICATE[0], detect_negative=negative, detect_positive=positive)
        for negative, positive in ((False, True), (True, False), (False, False))
    ),
)

examples(Sin, *examples_in(-7, 7))

examples(Cos, *examples_in(-7, 7))

examples(Tan, *examples_in(-1.4, 1.4))

examples(Asin, *examples_in(-1, 1))

examples(Acos, *examples_in(-1, 1))

examples(Atan, *examples_in(-3, 3))

examples(Sinh, *examples_in(-3, 3))

examples(Cosh, *examples_in(-3, 3))

examples(Asinh, *examples_in(-9, 9))

examples(Acosh, *examples_in(1, 9))

examples(Atanh, *examples_in(-0.9, 0.9))
