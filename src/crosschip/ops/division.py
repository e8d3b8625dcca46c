"""Division to whole numbers, and what it leaves over."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, Operand
from crosschip.ir.types import FLOATS
from crosschip.ops.comparison import NotEqual
from crosschip.ops.elementwise import (
    FLOAT_PAIRS,
    INTEGER_PAIRS,
    PROMOTED,
    QUANTIZED_PAIRS,
    Binary,
    Broadcast,
    Div,
    Sub,
)
from crosschip.ops.examples import example, given, random
from crosschip.ops.faces import NNAdapter, NNRt
from crosschip.ops.operator import operator, operator_named
from crosschip.ops.slots import flag
from crosschip.ops.unary import Floor


@operator("FLOOR_DIV", nnadapter=NNAdapter(28))
class FloorDiv(Binary):
    """`output = floor(input0 / input1)`, the two broadcast to one shape as NumPy does.

    For reals the quotient is rounded to the element type first, so that 1 by 0.1 is 10; by 0 it is
    an infinity or NaN, which stay as they are. Integers are divided exactly and rounded downwards;
    by 0 they give 0, and the least integer by -1 gives itself.
    """

    __slots__ = ()
    examples = (*FLOAT_PAIRS, *INTEGER_PAIRS, *QUANTIZED_PAIRS)

    def reference(self, input0: Array, input1: Array) -> Array:
        if input0.dtype.kind in "iu":
            return np.floor_divide(input0, input1)
        return np.floor(np.divide(input0, input1))

    def decompose(self, b: Builder) -> Operand:
        quotient = b.add(Div, self.input0, self.input1)
        if self.input0.type.element_type in FLOATS:
            return b.add(Floor, quotient)
        downwards, to_zero = (b.add(Mod, self.input0, self.input1, f) for f in (False, True))
        rounded_up = b.add(NotEqual, downwards, to_zero)
        one = b.add(operator_named("CAST"), rounded_up, self.input0.type.element_type)
        return b.add(Sub, quotient, one)


@operator(
    "MOD",
    nnrt=(NNRt(83, "MOD", ("input0", "input1"), translation=PROMOTED),),
    onnx=("Mod",),
    core=True,
)
class Mod(Broadcast):
    """The remainder of `input0 / input1`, the two broadcast to one shape as NumPy does.

    It is exact: `input0 - n * input1` for an integer `n`. With `fmod`, `n` is the quotient rounded
    towards zero, and the remainder has the sign of `input0`; without, `n` is rounded downwards, and
    the remainder has the sign of `input1`, so that a finite `input0` by an infinite `input1` gives
    `input0` or, if the signs differ, that infinity. By 0, integers give 0 and reals NaN; so does an
    infinite `input0`.
    """

    __slots__ = ()
    fmod = flag(False)
    examples = (
        example(input0=random(2, 1, 4, high=9), input1=random(3, 1, low=0.5)),
        example(input0=random(2, 4, low=-9), input1=random(4, low=0.5), fmod=True),
        *INTEGER_PAIRS,
        example(input0=given([-7, 7, -7, 7]), input1=given([3, -3, -3, 3]), fmod=True),
        example(input0=given([-7, 7, -7, 7]), input1=np.array([3, -3, -3, 3])),
    )

    def reference(self, input0: Array, input1: Array, fmod: bool) -> Array:
        return np.fmod(input0, input1) if fmod else np.mod(input0, input1)
