"""Element by element arithmetic on one or two tensors."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Shape
from crosschip.ir.types import ALL_TYPES, FLOATS, NUMBERS
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.shapes import broadcast
from crosschip.ops.slots import fuse, real, tensor


class Elementwise(Operator):
    """Base of operators whose output has the shape and element type of their first input."""

    __slots__ = ()

    def infer_shape(self) -> Shape:
        return shape_of(self._first())


class Binary(Operator):
    """Base of operators on two tensors of one element type, broadcast as NumPy does.

    The activation `fuse_code` is applied to the result.
    """

    __slots__ = ()
    input0 = tensor(NUMBERS)
    input1 = tensor(NUMBERS, like="input0")
    fuse_code = fuse()

    def infer_shape(self) -> Shape:
        return broadcast(shape_of(self.input0), shape_of(self.input1))


@operator("ADD")
class Add(Binary):
    """`output = input0 + input1`; integers wrap around on overflow."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.add(input0, input1)


@operator("SUB")
class Sub(Binary):
    """`output = input0 - input1`; integers wrap around on overflow."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.subtract(input0, input1)


@operator("MUL")
class Mul(Binary):
    """`output = input0 * input1`; integers wrap around on overflow."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.multiply(input0, input1)


@operator("DIV")
class Div(Binary):
    """`output = input0 / input1`; integers are divided towards zero, and by zero give 0."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        if input0.dtype.kind not in "iu":
            return np.divide(input0, input1)
        safe = np.where(input1 == 0, 1, input1)
        quotient = np.floor_divide(input0, safe)
        inexact = quotient * safe != input0
        towards_zero = quotient + (inexact & ((input0 < 0) != (safe < 0)))
        return np.where(input1 == 0, 0, towards_zero)


@operator("POW")
class Pow(Binary):
    """`output = input0 ** input1`; an integer to a negative power is truncated towards zero."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        if input0.dtype.kind not in "iu":
            return np.power(input0, input1)
        inverse = np.where(np.abs(input0) == 1, input0 ** (np.abs(input1) % 2), 0)
        return np.where(input1 < 0, inverse, np.power(input0, np.maximum(input1, 0)))


@operator("MAX")
class Max(Binary):
    """`output = max(input0, input1)`; NaN if either is NaN."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.maximum(input0, input1)


@operator("MIN")
class Min(Binary):
    """`output = min(input0, input1)`; NaN if either is NaN."""

    __slots__ = ()

    def reference(self, input0: Array, input1: Array) -> Array:
        return np.minimum(input0, input1)


@operator("SQRT")
class Sqrt(Elementwise):
    """`output = sqrt(input)`; NaN for a negative input."""

    __slots__ = ()
    input = tensor(FLOATS)

    def reference(self, input: Array) -> Array:
        return np.sqrt(input)


@operator("EXP")
class Exp(Elementwise):
    """`output = e ** input`."""

    __slots__ = ()
    input = tensor(FLOATS)

    def reference(self, input: Array) -> Array:
        return np.exp(input)


@operator("CLIP")
class Clip(Elementwise):
    """`output = min(max(input, min), max)`; NaN stays NaN."""

    __slots__ = ()
    input = tensor(NUMBERS)
    min = real(-np.inf)
    max = real(np.inf)

    def reference(self, input: Array, min: float, max: float) -> Array:
        return np.minimum(np.maximum(input, min), max)


@operator("ASSIGN")
class Assign(Elementwise):
    """`output = input`."""

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)

    def reference(self, input: Array) -> Array:
        return input
