"""Translation of symbolic sizes into another language, such as a compiler's."""

from __future__ import annotations

from functools import reduce
from typing import Any, Protocol, TypeVar

from crosschip.ir.dimension import Dim, terms_of

V = TypeVar("V")


class SizeArithmetic(Protocol[V]):
    """Arithmetic on values of the other language; `express` calls it on subexpressions first."""

    def constant(self, value: int) -> V:
        """Return the value of a number, which may be negative."""

    def size(self, name: str) -> V:
        """Return the value of a named size."""

    def add(self, a: V, b: V) -> V:
        """Return the sum."""

    def multiply(self, a: V, b: V) -> V:
        """Return the product."""

    def divide(self, a: V, b: V) -> V:
        """Return the quotient, rounded towards minus infinity; 0 where `b` is 0."""

    def minimum(self, a: V, b: V) -> V:
        """Return the lesser value."""


def express(dimension: Dim, arithmetic: SizeArithmetic[V]) -> V:
    """Return the value of a size in another language.

    For example, an emitter writes an output size in its compiler's language from input sizes. Terms
    are in the order of the normal form, so equal sizes have equal results.
    """
    if isinstance(dimension, int):
        return arithmetic.constant(dimension)
    sums: list[V] = []
    terms: Any = terms_of(dimension, lambda part: express(part, arithmetic))
    for coefficient, *factors in terms:
        values = [_factor(factor, arithmetic) for factor in factors]
        if coefficient != 1 or not values:
            values.append(arithmetic.constant(coefficient))
        sums.append(reduce(arithmetic.multiply, values))
    return reduce(arithmetic.add, sums)


def _factor(factor: Any, arithmetic: SizeArithmetic[V]) -> V:
    if isinstance(factor, str):
        return arithmetic.size(factor)
    function, *operands = factor
    result: V = reduce(arithmetic.divide if function == "//" else arithmetic.minimum, operands)
    return result
