"""Elementwise comparisons of two tensors with boolean results."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand
from crosschip.ir.types import BOOLEANS, NUMBERS
from crosschip.ops.definition.kinds import Broadcast
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import are_equal, shape_value_by_pairs
from crosschip.ops.definition.slots import tensor
from crosschip.ops.standard.logical import Not, Or


class Comparison(Broadcast):
    """Base class of comparisons of numbers or booleans, where false is less than true.

    NaN is not equal to, less than or greater than anything, including itself; 0 equals -0.
    Quantized tensors compare by the reals that they represent.
    """

    __slots__ = ()
    input0 = tensor(NUMBERS | BOOLEANS)
    input1 = tensor(NUMBERS | BOOLEANS, like="input0")

    def infer_element_type(self) -> ElementType:
        return ElementType.BOOL


@operator("EQUAL", core=True)
class Equal(Comparison):
    """`output = input0 == input1`, with NumPy broadcasting.

    False for NaN, which equals nothing, not even itself; 0 equals -0.
    """

    __slots__ = ()

    def infer_shape_value(self) -> Sequence[Dim]:
        return shape_value_by_pairs(self, are_equal)

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.equal(input0, input1)


@operator("NOT_EQUAL")
class NotEqual(Comparison):
    """`output = input0 != input1`, with NumPy broadcasting.

    True for NaN, which equals nothing, not even itself; 0 equals -0.
    """

    __slots__ = ()

    def infer_shape_value(self) -> Sequence[Dim]:
        return shape_value_by_pairs(self, lambda one, other: not are_equal(one, other))

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.not_equal(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Not, b.add(Equal, self.input0, self.input1))


@operator("LESS", core=True)
class Less(Comparison):
    """`output = input0 < input1`, with NumPy broadcasting.

    False for NaN; false is less than true, and 0 is neither less nor greater than -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.less(input0, input1)


@operator("LESS_EQUAL")
class LessEqual(Comparison):
    """`output = input0 <= input1`, with NumPy broadcasting.

    False for NaN; false is less than true, and 0 equals -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.less_equal(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Or, *(b.add(part, self.input0, self.input1) for part in (Less, Equal)))


@operator("GREATER")
class Greater(Comparison):
    """`output = input0 > input1`, with NumPy broadcasting.

    False for NaN; true is greater than false, and 0 is neither less nor greater than -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.greater(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Less, self.input1, self.input0)


@operator("GREATER_EQUAL")
class GreaterEqual(Comparison):
    """`output = input0 >= input1`, with NumPy broadcasting.

    False for NaN; true is greater than false, and 0 equals -0.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.greater_equal(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(LessEqual, self.input1, self.input0)
