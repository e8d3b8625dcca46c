"""Integers as rows of bits; negative ones in two's complement."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand
from crosschip.ir.types import INTEGERS
from crosschip.ops.elementwise import INT8, INT32, INT64, Add, Broadcast, Elementwise, Sub
from crosschip.ops.examples import example, given, random
from crosschip.ops.operator import operator
from crosschip.ops.slots import choice, tensor


class Bitwise(Broadcast):
    """Base of operators on two tensors of integers of one type, broadcast as NumPy does."""

    __slots__ = ()
    input0 = tensor(INTEGERS)
    input1 = tensor(INTEGERS, like="input0")
    examples = (
        example(
            input0=random(2, 1, 4, dtype=INT32, low=-99, high=99),
            input1=random(3, 1, dtype=INT32, low=-99, high=99),
        ),
        example(
            input0=random(8, dtype=ElementType.UINT8, high=256),
            input1=random(8, dtype=ElementType.UINT8, high=256),
        ),
        example(
            input0=random(8, dtype=INT8, low=-128, high=128),
            input1=random(8, dtype=INT8, low=-128, high=128),
        ),
        example(input0=given([2**62 + 1, -1]), input1=np.array([-(2**62), 2**62 + 3])),
    )


@operator("BITWISE_AND", onnx=("BitwiseAnd",), core=True)
class BitwiseAnd(Bitwise):
    """The bits that are set in both inputs, broadcast to one shape as NumPy does."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.bitwise_and(input0, input1)


@operator("BITWISE_OR", onnx=("BitwiseOr",))
class BitwiseOr(Bitwise):
    """The bits that are set in either input, or in both.

    The two are broadcast to one shape as NumPy does.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.bitwise_or(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        only0 = b.add(Sub, self.input0, b.add(BitwiseAnd, self.input0, self.input1))
        return b.add(Add, only0, self.input1)


@operator("BITWISE_XOR", onnx=("BitwiseXor",))
class BitwiseXor(Bitwise):
    """The bits that are set in one input and not in the other.

    The two are broadcast to one shape as NumPy does.
    """

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.bitwise_xor(input0, input1)

    def decompose(self, b: Builder) -> Operand:
        both = b.add(BitwiseAnd, self.input0, self.input1)
        return b.add(Add, b.add(Sub, self.input0, both), b.add(Sub, self.input1, both))


@operator("BITWISE_NOT", onnx=("BitwiseNot",))
class BitwiseNot(Elementwise):
    """The bits that are not set: `-1 - input`, or the greatest integer less the input."""

    __slots__ = ()
    input = tensor(INTEGERS)
    examples = (
        example(input=random(2, 3, dtype=INT32, low=-99, high=99)),
        example(input=random(5, dtype=ElementType.UINT8, high=256)),
        example(input=random(dtype=INT64, low=-9, high=9)),
    )

    def reference(self, input: Array) -> Array:
        return np.invert(input)

    def decompose(self, b: Builder) -> Operand:
        every_bit = np.array(-1).astype(self.input.type.element_type.dtype)
        return b.add(Sub, b.constant(every_bit), self.input)


class Direction(IntEnum):
    """Which way bits are shifted."""

    LEFT = 0
    RIGHT = 1


@operator("BIT_SHIFT", onnx=("BitShift",), core=True)
class BitShift(Broadcast):
    """`input0 * 2 ** input1` to the left, `floor(input0 / 2 ** input1)` to the right.

    The two are broadcast to one shape as NumPy does. Bits that are shifted out are lost. By as many
    places as there are bits, by more, or by a negative number of them, everything is: 0 is left, or
    -1 of a negative integer to the right.
    """

    __slots__ = ()
    input0 = tensor(INTEGERS)
    input1 = tensor(INTEGERS, like="input0")
    direction = choice(Direction, Direction.LEFT)
    examples = (
        example(
            input0=random(2, 4, dtype=ElementType.UINT8, high=256),
            input1=random(4, dtype=ElementType.UINT8, high=8),
        ),
        example(
            input0=random(4, dtype=ElementType.UINT32, high=2**32),
            input1=np.array([3], np.uint32),
            direction=Direction.RIGHT,
        ),
        example(input0=given([-7, 7, -(2**62), 1]), input1=given([1, 2, 64, 63]), direction=1),
        example(input0=given([-7, 7, -1, 1]), input1=given([1, -1, 64, 63]), direction=0),
    )

    def reference(self, input0: Array, input1: Array, direction: Direction) -> Array:
        shift = np.left_shift if direction is Direction.LEFT else np.right_shift
        return shift(input0, input1)
