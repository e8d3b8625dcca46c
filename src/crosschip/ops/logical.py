"""Truth values: what combines them, and what they choose between."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, Shape
from crosschip.ir.types import ALL_TYPES, BOOLEANS
from crosschip.ops.elementwise import INT8, INT32, PROMOTED, Broadcast, Elementwise
from crosschip.ops.examples import example, given, random
from crosschip.ops.faces import NNAdapter, NNRt
from crosschip.ops.operator import Operator, operator, operator_named, shape_of
from crosschip.ops.shapes import broadcast
from crosschip.ops.slots import tensor

BOOL = ElementType.BOOL


class Logical(Broadcast):
    """Base of operators on two tensors of truth values, broadcast as NumPy does."""

    __slots__ = ()
    input0 = tensor(BOOLEANS)
    input1 = tensor(BOOLEANS)
    examples = (
        example(input0=given([True, True, False, False]), input1=given([True, False, True, False])),
        example(input0=random(2, 1, 4, dtype=BOOL), input1=random(3, 1, dtype=BOOL)),
        example(input0=random(2, 3, dtype=BOOL), input1=np.array(True)),
    )


@operator("NOT", nnadapter=NNAdapter(53), nnrt=(NNRt(82, "LOGICAL_NOT"),), onnx=("Not",), core=True)
class Not(Elementwise):
    """`output = not input`: true where the input is false."""

    __slots__ = ()
    input = tensor(BOOLEANS)
    examples = (example(input=random(2, 3, dtype=BOOL)), example(input=random(dtype=BOOL)))

    def reference(self, input: Array) -> Array:
        return np.logical_not(input)


@operator(
    "AND",
    nnadapter=NNAdapter(4),
    nnrt=(NNRt(81, "LOGICAL_AND", ("input0", "input1")),),
    onnx=("And",),
    core=True,
)
class And(Logical):
    """True where both inputs are, the two broadcast to one shape as NumPy does."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.logical_and(input0, input1)


@operator(
    "OR",
    nnadapter=NNAdapter(55),
    nnrt=(NNRt(89, "LOGICAL_OR", ("input0", "input1")),),
    onnx=("Or",),
)
class Or(Logical):
    """True where an input is, or both are, the two broadcast to one shape as NumPy does."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.logical_or(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Not, b.add(And, b.add(Not, self.input0), b.add(Not, self.input1)))


@operator("XOR", nnadapter=NNAdapter(93), onnx=("Xor",))
class Xor(Logical):
    """True where one input is and the other is not.

    The two are broadcast to one shape as NumPy does.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.logical_xor(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(operator_named("NOT_EQUAL"), self.input0, self.input1)


@operator(
    "WHERE",
    nnadapter=NNAdapter(92),
    nnrt=(
        NNRt(62, "SELECT", ("condition", "input0", "input1"), translation=PROMOTED),
        NNRt(87, "WHERE", ("condition", "input0", "input1"), translation=PROMOTED),
    ),
    onnx=("Where",),
    core=True,
)
class Where(Operator):
    """The element of `input0` where `condition` is true, that of `input1` where it is not.

    All three are broadcast as NumPy does. Elements are chosen bit by bit, whatever their type; what
    is not chosen has no influence, not even if it is NaN.
    """

    __slots__ = ()
    moves = True
    condition = tensor(BOOLEANS)
    input0 = tensor(ALL_TYPES)
    input1 = tensor(ALL_TYPES, like="input0")
    examples = (
        example(condition=random(2, 3, dtype=BOOL), input0=random(2, 3), input1=random(2, 3)),
        example(condition=random(3, 1, dtype=BOOL), input0=random(2, 1, 4), input1=np.float32(1)),
        example(condition=given(True), input0=given([np.nan, 1]), input1=random(3, 2)),
        example(
            condition=random(4, dtype=BOOL),
            input0=random(4, dtype=INT32, low=-9, high=9),
            input1=random(dtype=INT32, low=-9, high=9),
        ),
        example(
            condition=random(4, dtype=BOOL),
            input0=random(4, dtype=INT8, low=-9, high=9, quantization=Quantization((0.1,))),
            input1=random(4, dtype=INT8, low=-9, high=9, quantization=Quantization((0.1,))),
        ),
        example(
            condition=random(4, dtype=BOOL),
            input0=random(4, dtype=INT8, low=-9, high=9, quantization=Quantization((0.1,))),
            input1=random(4, dtype=INT8, low=-9, high=9, quantization=Quantization((0.2,))),
            quantization=Quantization((0.2,)),
        ),
    )

    def infer_element_type(self) -> ElementType:
        return type(self).input0.element_type(self.input0)

    def infer_shape(self) -> Shape:
        return broadcast(*map(shape_of, (self.condition, self.input0, self.input1)))

    def reference(self, condition: Array, input0: Array, input1: Array) -> Array:
        return np.where(condition, input0, input1)
