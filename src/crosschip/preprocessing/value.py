"""Numbers that are known when a graph is built, or computed in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand
from crosschip.ir.builder import OperatorClass
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Abs, Floor

_MAX_EXACT = 2**24
"""The number up to which float32 has all integers."""


class Value:
    """Array of float32 that is known, or an operand that the graph computes.

    Arithmetic on known arrays is done at once; other arithmetic adds operations to the builder. It
    is in float32 because that is what all devices have, and exact for integers up to 2 ** 24.

    Attributes:
        content: the array or the operand.
    """

    __slots__ = ("_b", "content")

    def __init__(self, b: Builder, content: Array | Operand | float) -> None:
        self._b = b
        self.content = (
            content if isinstance(content, Operand) else np.atleast_1d(np.float32(content))
        )

    @classmethod
    def of_size(cls, b: Builder, operand: Operand, axis: int) -> Value:
        """Return the size of an operand of known rank along an axis, as a list of one."""
        assert operand.type.shape is not None, "the rank is known"
        size = operand.type.shape[axis]
        if isinstance(size, int):
            return cls(b, size)
        size_list = b.add(
            Gather, b.add(ShapeOf, operand, ElementType.INT32), b.constant(np.array([axis])), 0
        )
        return cls(b, b.add(Cast, size_list, ElementType.FLOAT32))

    def known(self, number: float) -> Value:
        """Return a number as a list of one."""
        return Value(self._b, number)

    @property
    def number(self) -> float | None:
        """Return the only element if it is known."""
        return None if isinstance(self.content, Operand) else float(self.content.item())

    @property
    def operand(self) -> Operand:
        """Return the value as an operand of float32."""
        return self.content if isinstance(self.content, Operand) else self._b.constant(self.content)

    @property
    def integers(self) -> Operand:
        """Return the value, of integers, as an operand of int32."""
        if isinstance(self.content, Operand):
            return self._b.add(Cast, self.content, ElementType.INT32)
        return self._b.constant(self.content.astype(np.int32))

    def __add__(self, other: Value | float) -> Value:
        return self._apply(other, Add, np.add)

    def __sub__(self, other: Value | float) -> Value:
        return self._apply(other, Sub, np.subtract)

    def __mul__(self, other: Value | float) -> Value:
        return self._apply(other, Mul, np.multiply)

    def __truediv__(self, other: Value | float) -> Value:
        return self._apply(other, Div, np.divide)

    def __floordiv__(self, other: Value | float) -> Value:
        return (self / other)._map(np.floor, Floor)

    def __neg__(self) -> Value:
        return self * -1

    def at_least(self, other: Value | float) -> Value:
        """Return the greater value, element by element."""
        return self._apply(other, Max, np.maximum)

    def at_most(self, other: Value | float) -> Value:
        """Return the lesser value, element by element."""
        return self._apply(other, Min, np.minimum)

    def magnitude(self) -> Value:
        """Return the absolute values."""
        return self._map(np.abs, Abs)

    def shaped(self, *shape: int) -> Value:
        """Return the value in another shape, of which one size may be -1."""
        return self._map(lambda a: a.reshape(shape), Reshape, shape)

    def row_sums(self) -> Value:
        """Return the sum of each row [n, m] as a column [n, 1]."""
        return self._map(lambda a: a.sum(1, a.dtype, keepdims=True), ReduceSum, (1,), True)

    def numbers(self) -> Value:
        """Return 0, 1, … up to but excluding a size."""
        if not isinstance(self.content, Operand):
            return Value(self._b, np.arange(self.content.item(), dtype=np.float32))
        zero, one = (self._b.constant(np.array([n], np.int32)) for n in (0, 1))
        end = self._b.add(Clip, self.integers, 0, _MAX_EXACT)  # engines must know the bounds
        numbers = self._b.add(Range, zero, end, one)
        return Value(self._b, self._b.add(Cast, numbers, ElementType.FLOAT32))

    def _map(
        self, compute: Callable[[Array], Any], operator: OperatorClass, *parameters: object
    ) -> Value:
        if isinstance(self.content, Operand):
            return Value(self._b, self._b.add(operator, self.content, *parameters))
        return Value(self._b, compute(self.content))

    def _apply(
        self,
        other: Value | float,
        operator: OperatorClass,
        compute: Callable[[Array, Array], Any],
    ) -> Value:
        second = other if isinstance(other, Value) else Value(self._b, other)
        if isinstance(self.content, Operand) or isinstance(second.content, Operand):
            return Value(self._b, self._b.add(operator, self.operand, second.operand))
        return Value(self._b, compute(self.content, second.content))
