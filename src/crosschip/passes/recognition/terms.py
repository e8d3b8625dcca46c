"""Terms of which formulas for operators consist, and their matches with operations.

A term is written as arithmetic: `x * sigmoid(x)` is a `MUL` of an operand `x` and the `SIGMOID` of
the same operand. The operands of `ADD` and `MUL` match in either order, and `a / root` also matches
a product with the inverse root. `product(0.5, x, y)` matches any computation with products, powers
and quotients by numbers that has the same value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import permutations
from typing import Any

from crosschip.ir import Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ops.definition.operator import Operator, shape_of
from crosschip.ops.standard.activation import Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mul, Pow, Sub
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.unary import Erf, Reciprocal, Rsqrt, Sqrt, Square
from crosschip.passes.recognition.parts import Parts, same_number


@dataclass(frozen=True)
class Match:
    """A term that is matched with operations of a model, completely or in part.

    Attributes:
        values: the operands and numbers of variables.
        parts: the matched operations, in topological order.
    """

    values: Mapping[Variable, Any] = field(default_factory=dict)
    parts: Sequence[Operation] = ()

    def __getitem__(self, variable: Variable) -> Any:
        return self.values[variable]

    def after(self, *operations: Operation) -> Match:
        """Return the match extended by operations."""
        return Match(self.values, tuple(dict.fromkeys((*self.parts, *operations))))

    def bound(self, variable: Variable, value: Any) -> Match:
        """Return the match with a variable bound to an operand or a number."""
        return Match({**self.values, variable: value}, self.parts)


class Term(ABC):
    """A formula for an operand.

    Attributes:
        kinds: the possible operators of the operand's producer.
        within: the subterms.
    """

    kinds: Sequence[type[Operator]] = ()
    within: Sequence[Term] = ()

    def needs(self) -> frozenset[type[Operator]]:
        """Return operators that all matches contain."""
        required = self.kinds if len(self.kinds) == 1 else ()
        return frozenset(required).union(*(term.needs() for term in self.within))

    @abstractmethod
    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        """Yield the ways in which an operand matches, given the variables bound so far."""

    def __add__(self, other: Term | float) -> Term:
        return _Pair(Add, self, _term(other))

    def __radd__(self, other: float) -> Term:
        return self + other

    def __sub__(self, other: Term) -> Term:
        return _Pair(Sub, self, other)

    def __mul__(self, other: Term | float) -> Term:
        return _Pair(Mul, self, _term(other))

    def __truediv__(self, other: Root) -> Term:
        return _Quotient(self, other)


class Variable(Term):
    """An operand; the same one in all its occurrences."""

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        value = so_far.values.get(self)
        if operand is not None and value is None and self._accepts(operand):
            yield so_far.bound(self, operand)
        elif operand is not None and value is operand:
            yield so_far

    def _accepts(self, operand: Operand) -> bool:
        return True


class Constant(Variable):
    """A constant operand."""

    def _accepts(self, operand: Operand) -> bool:
        return operand.is_constant


class AnyNumber(Variable):
    """A constant with one element; bound to the number."""

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        value = parts.number(operand)
        if value is not None:
            yield so_far.bound(self, value)


@dataclass(frozen=True)
class _Number(Term):
    """A constant whose one element is a given number."""

    number: float

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        value = parts.number(operand)
        if value is not None and same_number(value, self.number):
            yield so_far


class _Function(Term):
    """An operation of some kinds on its first input."""

    def __init__(self, argument: Term, *kinds: type[Operator]) -> None:
        self.kinds, self.within = kinds, (argument,)

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        operation = parts.of(operand, *self.kinds)
        if operation is not None:
            for match in self.within[0].matches(parts, operation.inputs[0], so_far):
                for whole in self._check(operation, match):
                    yield whole.after(operation)

    def _check(self, operation: Operator, match: Match) -> Iterator[Match]:
        """Yield the match if the operation's parameters fit."""
        yield match


class _Clipped(_Function):
    """Clipping to 0 and 1."""

    def _check(self, operation: Operator, match: Match) -> Iterator[Match]:
        assert isinstance(operation, Clip), "kinds allow no other"
        if (operation.min, operation.max) == (0, 1):
            yield match


class Mean(_Function):
    """The mean over the last axes; binds a variable to the first of them, as a negative index."""

    def __init__(self, argument: Term, axis: Variable) -> None:
        super().__init__(argument, ReduceMean)
        self._axis = axis

    def _check(self, operation: Operator, match: Match) -> Iterator[Match]:
        assert isinstance(operation, ReduceMean), "kinds allow no other"
        rank = len(shape_of(operation.input))
        axes = sorted({axis % rank for axis in operation.axes or range(rank)}) if rank else []
        if not axes or not operation.keepdim or axes != list(range(axes[0], rank)):
            return
        first = axes[0] - rank
        if match.values.get(self._axis, first) == first:
            yield match.bound(self._axis, first)


class _Pair(Term):
    """An operation on two operands, in either order except for `SUB`."""

    def __init__(self, kind: type[Operator], *terms: Term) -> None:
        self.kinds, self.within = (kind,), terms

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        operation = parts.of(operand, *self.kinds)
        if operation is None:
            return
        operands = operation.inputs[:2]
        for first, second in [operands] if isinstance(operation, Sub) else permutations(operands):
            for half in self.within[0].matches(parts, first, so_far):
                for whole in self.within[1].matches(parts, second, half):
                    yield whole.after(operation)


class Root(Term):
    """A square root."""

    kinds = (Sqrt, Pow)

    def __init__(self, argument: Term) -> None:
        self.within = (argument,)

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        yield from self._power(parts, operand, so_far, Sqrt, 0.5)

    def inverses(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        """Yield the ways in which an operand is the inverse of the root."""
        yield from self._power(parts, operand, so_far, Rsqrt, -0.5)
        operation = parts.of(operand, Reciprocal, Div)
        if operation is None:
            return
        *numerator, denominator = operation.inputs[: 2 if isinstance(operation, Div) else 1]
        if not numerator or parts.number(numerator[0]) == 1:
            for match in self.matches(parts, denominator, so_far):
                yield match.after(operation)

    def _power(
        self,
        parts: Parts,
        operand: Operand | None,
        so_far: Match,
        kind: type[Operator],
        exponent: float,
    ) -> Iterator[Match]:
        operation = parts.of(operand, kind, Pow)
        if operation is None:
            return
        if isinstance(operation, Pow) and parts.number(operation.inputs[1]) != exponent:
            return
        for match in self.within[0].matches(parts, operation.inputs[0], so_far):
            yield match.after(operation)


class _Quotient(Term):
    """A term divided by a square root."""

    kinds = (Div, Mul)

    def __init__(self, numerator: Term, denominator: Root) -> None:
        self.within = (numerator, denominator)
        self._numerator, self._denominator = numerator, denominator

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        operation = parts.of(operand, *self.kinds)
        if operation is None:
            return
        operands, is_division = operation.inputs[:2], isinstance(operation, Div)
        divisors = self._denominator.matches if is_division else self._denominator.inverses
        for first, second in [operands] if is_division else permutations(operands):
            for half in divisors(parts, second, so_far):
                for whole in self._numerator.matches(parts, first, half):
                    yield whole.after(operation)


class _Product(Term):
    """A number times factors."""

    kinds = (Mul, Div, Pow, Square)

    def __init__(self, number: float, factors: Sequence[Term]) -> None:
        self._number, self._factors = number, Counter(factors)
        self.within = tuple(self._factors)

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        if operand is None:
            return
        for match, chosen in self._choose(parts, parts.factors(operand), so_far, []):
            whole = parts.product(operand, chosen)
            factors = dict(zip(chosen, self._factors.values(), strict=True))
            if whole is not None and whole.equals(self._number, *Counter(factors).elements()):
                yield match.after(*whole.parts)

    def _choose(
        self, parts: Parts, candidates: Sequence[Operand], match: Match, chosen: list[Operand]
    ) -> Iterator[tuple[Match, list[Operand]]]:
        """Yield the ways to choose an operand for each distinct factor."""
        if len(chosen) == len(self._factors):
            yield match, chosen
            return
        term = self.within[len(chosen)]
        for candidate in candidates:
            if candidate not in chosen:
                for more in term.matches(parts, candidate, match):
                    yield from self._choose(parts, candidates, more, [*chosen, candidate])


def product(number: float, *factors: Term) -> Term:
    """Return a number times factors in any order; put factors with structure first, for speed."""
    return _Product(number, factors)


def square(argument: Term) -> Term:
    """Return the square, in any spelling."""
    return product(1.0, argument, argument)


def clipped(argument: Term) -> Term:
    """Return the term clipped to 0 and 1."""
    return _Clipped(argument, Clip)


def erf(argument: Term) -> Term:
    """Return the error function of a term."""
    return _Function(argument, Erf)


def tanh(argument: Term) -> Term:
    """Return the hyperbolic tangent of a term."""
    return _Function(argument, Tanh)


def sigmoid(argument: Term) -> Term:
    """Return the logistic function of a term."""
    return _Function(argument, Sigmoid)


def _term(value: Term | float) -> Term:
    return value if isinstance(value, Term) else _Number(float(value))
