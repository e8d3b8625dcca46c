"""Boolean and bitwise operators, and selection by a condition.

Negative integers are in two's complement.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape
from crosschip.ir.types import ALL_TYPES, BOOLEANS, INTEGERS
from crosschip.ops.definition.kinds import Broadcast, Elementwise, aligned_row_axis
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.definition.registry import operator, operator_named
from crosschip.ops.definition.shape_values import shape_value_by_elements
from crosschip.ops.definition.shapes import broadcast
from crosschip.ops.definition.slots import choice, tensor
from crosschip.ops.standard.arithmetic import Add, Sub


class Logical(Broadcast):
    """Base class of operators on two boolean tensors, with NumPy broadcasting."""

    __slots__ = ()
    input0 = tensor(BOOLEANS)
    input1 = tensor(BOOLEANS)


@operator("NOT")
class Not(Elementwise):
    """`output = not input`: true where the input is false."""

    __slots__ = ()
    input = tensor(BOOLEANS)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return np.logical_not(input)

    def decompose(self, b: Builder) -> Operand:
        """Build a comparison with false."""
        false = b.constant(np.zeros((), self.input.type.element_type.dtype))
        return b.add(operator_named("EQUAL"), self.input, false)


@operator("AND", core=True)
class And(Logical):
    """True where both inputs are, with NumPy broadcasting."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.logical_and(input0, input1)


@operator("OR")
class Or(Logical):
    """True where at least one input is, with NumPy broadcasting."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.logical_or(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Not, b.add(And, b.add(Not, self.input0), b.add(Not, self.input1)))


@operator("XOR")
class Xor(Logical):
    """True where exactly one input is, with NumPy broadcasting."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.logical_xor(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        return b.add(operator_named("NOT_EQUAL"), self.input0, self.input1)


@operator("WHERE", core=True)
class Where(Operator):
    """The element of `input0` where `condition` is true, else that of `input1`.

    All three are broadcast as in NumPy. Elements are copied bit by bit, whatever their type;
    elements that are not selected have no influence, not even NaN.
    """

    __slots__ = ()
    moves = True
    condition = tensor(BOOLEANS)
    input0 = tensor(ALL_TYPES)
    input1 = tensor(ALL_TYPES, like="input0")
    row_axis = aligned_row_axis
    infer_shape_value = shape_value_by_elements

    def infer_element_type(self) -> ElementType:
        return type(self).input0.element_type(self.input0)

    def infer_shape(self) -> Shape:
        return broadcast(*map(shape_of, (self.condition, self.input0, self.input1)))

    def reference(self, condition: Array, input0: Array, input1: Array) -> Array:
        return np.where(condition, input0, input1)


class Bitwise(Broadcast):
    """Base class of operators on two integer tensors of one type, with NumPy broadcasting."""

    __slots__ = ()
    input0 = tensor(INTEGERS)
    input1 = tensor(INTEGERS, like="input0")


@operator("BITWISE_AND", core=True)
class BitwiseAnd(Bitwise):
    """The bits that are set in both inputs, with NumPy broadcasting."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.bitwise_and(input0, input1)


@operator("BITWISE_OR")
class BitwiseOr(Bitwise):
    """The bits that are set in at least one input, with NumPy broadcasting."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.bitwise_or(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        only0 = b.add(Sub, self.input0, b.add(BitwiseAnd, self.input0, self.input1))
        return b.add(Add, only0, self.input1)


@operator("BITWISE_XOR")
class BitwiseXor(Bitwise):
    """The bits that are set in exactly one input, with NumPy broadcasting."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.bitwise_xor(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        both = b.add(BitwiseAnd, self.input0, self.input1)
        return b.add(Add, b.add(Sub, self.input0, both), b.add(Sub, self.input1, both))


@operator("BITWISE_NOT")
class BitwiseNot(Elementwise):
    """The inverted bits: `-1 - input`, or the largest integer minus the input if unsigned."""

    __slots__ = ()
    input = tensor(INTEGERS)
    row_axis = aligned_row_axis

    def reference(self, input: Array) -> Array:
        return np.invert(input)

    def decompose(self, b: Builder) -> Operand:
        every_bit = np.array(-1).astype(self.input.type.element_type.dtype)
        return b.add(Sub, b.constant(every_bit), self.input)


class ShiftDirection(IntEnum):
    """Direction of a bit shift."""

    LEFT = 0
    RIGHT = 1


@operator("BIT_SHIFT", core=True)
class BitShift(Broadcast):
    """`input0 * 2 ** input1` (left) or `floor(input0 / 2 ** input1)` (right).

    The inputs are broadcast as in NumPy. Bits that are shifted out are lost. A shift by at least
    the number of bits, or by a negative number, shifts out all bits: the result is 0, or -1 for a
    negative integer shifted to the right.
    """

    __slots__ = ()
    input0 = tensor(INTEGERS)
    input1 = tensor(INTEGERS, like="input0")
    direction = choice(ShiftDirection, ShiftDirection.LEFT)

    def reference(self, input0: Array, input1: Array) -> Array:
        shift = np.left_shift if self.direction is ShiftDirection.LEFT else np.right_shift
        return shift(input0, input1)
