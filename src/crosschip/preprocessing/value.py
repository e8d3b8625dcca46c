"""Arrays that are known when a graph is built, or computed in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand
from crosschip.ir.builder import OperatorClass
from crosschip.ops.standard.arithmetic import Add, Div, Max, Min, Mul, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Abs

Operator = OperatorClass
Scalar = int | float


class Value:
    """Array of int64 or float32: known, or an operand that the graph computes.

    Arithmetic on known arrays is done at once; other arithmetic adds operations to the builder.

    Attributes:
        content: the array or the operand.
    """

    __slots__ = ("_b", "content")

    def __init__(self, b: Builder, content: Array | Operand) -> None:
        self._b = b
        self.content = content

    @classmethod
    def of_size(cls, b: Builder, operand: Operand, axis: int) -> Value:
        """Return the size of an operand of known rank along an axis, as int64 [1]."""
        assert operand.type.shape is not None, "the rank is known"
        size = operand.type.shape[axis]
        if isinstance(size, int):
            return cls(b, np.array([size]))
        return cls(b, b.add(Gather, b.add(ShapeOf, operand), b.constant(np.array([axis])), 0))

    @property
    def number(self) -> int | None:
        """Return the only element if it is known."""
        return None if isinstance(self.content, Operand) else int(self.content.item())

    @property
    def operand(self) -> Operand:
        """Return the value as an operand."""
        return self.content if isinstance(self.content, Operand) else self._b.constant(self.content)

    def __add__(self, other: Value | Scalar) -> Value:
        return self._apply(other, Add, np.add)

    def __sub__(self, other: Value | Scalar) -> Value:
        return self._apply(other, Sub, np.subtract)

    def __mul__(self, other: Value | Scalar) -> Value:
        return self._apply(other, Mul, np.multiply)

    def __truediv__(self, other: Value | Scalar) -> Value:
        return self._apply(other, Div, np.divide)

    def __floordiv__(self, other: Value | Scalar) -> Value:
        """Return the quotient of integers that are not negative, rounded down; 0 if by 0."""
        return self._apply(other, Div, lambda a, b: np.where(b == 0, 0, a // np.maximum(b, 1)))

    def at_least(self, other: Value | Scalar) -> Value:
        """Return the greater value, element by element."""
        return self._apply(other, Max, np.maximum)

    def at_most(self, other: Value | Scalar) -> Value:
        """Return the lesser value, element by element."""
        return self._apply(other, Min, np.minimum)

    def magnitude(self) -> Value:
        """Return the absolute values."""
        return self._map(np.abs, Abs)

    def real(self) -> Value:
        """Return integers as float32."""
        return self._map(lambda a: a.astype(np.float32), Cast, ElementType.FLOAT32)

    def as_column(self) -> Value:
        """Return a list [n] as a column [n, 1]."""
        return self._map(lambda a: a[:, None], Unsqueeze, (1,))

    def row_sums(self) -> Value:
        """Return the sum of each row [n, m] as a column [n, 1]."""
        return self._map(lambda a: a.sum(1, a.dtype, keepdims=True), ReduceSum, (1,), True)

    def numbers(self) -> Value:
        """Return 0, 1, … up to but excluding a size."""
        if isinstance(self.content, Operand):
            zero, one = (self._b.constant(np.array([n])) for n in (0, 1))
            return Value(self._b, self._b.add(Range, zero, self.content, one))
        return Value(self._b, np.arange(self.content.item()))

    def _map(
        self, compute: Callable[[Array], Any], operator: Operator, *parameters: object
    ) -> Value:
        if isinstance(self.content, Operand):
            return Value(self._b, self._b.add(operator, self.content, *parameters))
        return Value(self._b, compute(self.content))

    def _apply(
        self, other: Value | Scalar, operator: Operator, compute: Callable[[Array, Array], Any]
    ) -> Value:
        if not isinstance(other, Value):
            dtype = (
                self.content.type.element_type.dtype
                if isinstance(self.content, Operand)
                else self.content.dtype
            )
            other = Value(self._b, np.array(other, dtype))
        if isinstance(self.content, Operand) or isinstance(other.content, Operand):
            return Value(self._b, self._b.add(operator, self.operand, other.operand))
        return Value(self._b, compute(self.content, other.content))
