"""Comparisons of two tensors, element by element; the results are true or false."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization
from crosschip.ir.types import BOOLEANS, NUMBERS
from crosschip.ops.elementwise import INT8, PROMOTED, UINT8, Broadcast
from crosschip.ops.examples import example, given, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.logical import Not, Or
from crosschip.ops.operator import operator
from crosschip.ops.slots import tensor

COMPARED = f"{PROMOTED}; the output's quantization means nothing"


class Comparison(Broadcast):
    """Base of comparisons of numbers, or of truth values, where false is less than true.

    NaN is neither equal to, nor less, nor greater than anything, itself included; 0 equals -0.
    Quantized tensors compare by the reals that they stand for.
    """

    __slots__ = ()
    input0 = tensor(NUMBERS | BOOLEANS)
    input1 = tensor(NUMBERS | BOOLEANS, like="input0")
    examples = (
        example(input0=random(2, 1, 4), input1=random(3, 1)),
        example(
            input0=random(2, 5, dtype=ElementType.INT32, low=-3, high=3),
            input1=random(5, dtype=ElementType.INT32, low=-3, high=3),
        ),
        example(input0=random(8, dtype=ElementType.BOOL), input1=random(8, dtype=ElementType.BOOL)),
        example(input0=given([2**53, 2**53 + 1]), input1=np.array([2**53 + 1, 2**53 + 1])),
        example(
            input0=given([np.nan, np.nan, 0.0, np.inf]), input1=given([np.nan, 1, -0.0, np.inf])
        ),
        example(
            input0=random(6, dtype=INT8, low=-8, high=8, quantization=Quantization((0.25,))),
            input1=random(6, dtype=UINT8, high=8, quantization=Quantization((0.5,), (4,))),
        ),
    )

    def infer_element_type(self) -> ElementType:
        return ElementType.BOOL


@operator(
    "EQUAL",
    nnadapter=NNAdapter(21),
    nnrt=(NNRt(70, "EQUAL", ("input0", "input1"), translation=COMPARED),),
    onnx=("Equal",),
    core=True,
)
class Equal(Comparison):
    """`output = input0 == input1`, the two broadcast to one shape as NumPy does.

    False of NaN, which nothing equals, itself included; 0 equals -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.equal(input0, input1)


@operator(
    "NOT_EQUAL",
    nnadapter=NNAdapter(54),
    nnrt=(NNRt(72, "NOT_EQUAL", ("input0", "input1"), translation=COMPARED),),
)
class NotEqual(Comparison):
    """`output = input0 != input1`, the two broadcast to one shape as NumPy does.

    True of NaN, which nothing equals, itself included; 0 equals -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.not_equal(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Not, b.add(Equal, self.input0, self.input1))


@operator(
    "LESS",
    nnadapter=NNAdapter(41),
    nnrt=(NNRt(61, "LESS", ("input0", "input1"), translation=COMPARED),),
    onnx=("Less",),
    core=True,
)
class Less(Comparison):
    """`output = input0 < input1`, the two broadcast to one shape as NumPy does.

    False of NaN; false is less than true, and 0 is not less or greater than -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.less(input0, input1)


@operator(
    "LESS_EQUAL",
    nnadapter=NNAdapter(42),
    nnrt=(NNRt(18, "LESS_EQUAL", ("input0", "input1"), translation=COMPARED),),
    hdi=(NodeType.LESS_EQUAL,),
    onnx=("LessOrEqual",),
)
class LessEqual(Comparison):
    """`output = input0 <= input1`, the two broadcast to one shape as NumPy does.

    False of NaN; false is less than true, and 0 equals -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.less_equal(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Or, *(b.add(part, self.input0, self.input1) for part in (Less, Equal)))


@operator(
    "GREATER",
    nnadapter=NNAdapter(32),
    nnrt=(NNRt(71, "GREATER", ("input0", "input1"), translation=COMPARED),),
    onnx=("Greater",),
)
class Greater(Comparison):
    """`output = input0 > input1`, the two broadcast to one shape as NumPy does.

    False of NaN; true is greater than false, and 0 is not less or greater than -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.greater(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Less, self.input1, self.input0)


@operator(
    "GREATER_EQUAL",
    nnadapter=NNAdapter(33),
    nnrt=(NNRt(73, "GREATER_EQUAL", ("input0", "input1"), translation=COMPARED),),
    onnx=("GreaterOrEqual",),
)
class GreaterEqual(Comparison):
    """`output = input0 >= input1`, the two broadcast to one shape as NumPy does.

    False of NaN; true is greater than false, and 0 equals -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.greater_equal(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(LessEqual, self.input1, self.input0)
