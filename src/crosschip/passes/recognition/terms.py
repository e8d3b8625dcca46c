"""Terms, of which formulas for operators are made, and their matches with operations.

A term is written as arithmetic: `x * sigmoid(x)` is a `MUL` of an operand, which is called `x`, and
of the `SIGMOID` of the same operand. The operands of `ADD` and `MUL` may come in either order, and
`a / root` may be written as a product with the inverse. `product(0.5, x, y)` is a product in
whatever order, with numbers, powers and quotients by numbers in it, that comes to the same.
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
    """A term, or part of one, in a model.

    Attributes:
        values: the operands and numbers that variables stand for.
        parts: the operations that compute it, each after those that it reads.
    """

    values: Mapping[Variable, Any] = field(default_factory=dict)
    parts: Sequence[Operation] = ()

    def __getitem__(self, variable: Variable) -> Any:
        return self.values[variable]

    def after(self, *operations: Operation) -> Match:
        """The match with operations behind it."""
        return Match(self.values, tuple(dict.fromkeys((*self.parts, *operations))))

    def bound(self, variable: Variable, value: Any) -> Match:
        """The match in which a variable stands for something."""
        return Match({**self.values, variable: value}, self.parts)


class Term(ABC):
    """What an operand may be.

    Attributes:
        kinds: the operators of which one makes it.
        within: the terms that it is made of.
    """

    kinds: Sequence[type[Operator]] = ()
    within: Sequence[Term] = ()

    def needs(self) -> frozenset[type[Operator]]:
        """The operators without which there is no match."""
        own = self.kinds if len(self.kinds) == 1 else ()
        return frozenset(own).union(*(term.needs() for term in self.within))

    @abstractmethod
    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        """The ways in which an operand is what the term says, given what variables stand for."""

    def __add__(self, other: Term | float) -> Term:
        return _Pair(Add, self, _term(other))

    def __radd__(self, other: float) -> Term:
        return self + other

    def __sub__(self, other: Term) -> Term:
        return _Pair(Sub, self, other)

    def __mul__(self, other: Term | float) -> Term:
        return _Pair(Mul, self, _term(other))

    def __truediv__(self, other: _Root) -> Term:
        return _Quotient(self, other)


class Variable(Term):
    """An operand; the same one wherever the variable stands."""

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        known = so_far.values.get(self)
        if operand is not None and known is None and self._may_be(operand):
            yield so_far.bound(self, operand)
        elif operand is not None and known is operand:
            yield so_far

    def _may_be(self, operand: Operand) -> bool:
        return True


class Constant(Variable):
    """A constant."""

    def _may_be(self, operand: Operand) -> bool:
        return operand.is_constant


class AnyNumber(Variable):
    """A constant that is one number; stands for that."""

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        value = parts.number(operand)
        if value is not None:
            yield so_far.bound(self, value)


@dataclass(frozen=True)
class _Number(Term):
    """A constant that is one certain number."""

    number: float

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        value = parts.number(operand)
        if value is not None and same_number(value, self.number):
            yield so_far


class _Function(Term):
    """What one of some operators makes of its first input."""

    def __init__(self, argument: Term, *kinds: type[Operator]) -> None:
        self.kinds, self.within = kinds, (argument,)

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        operation = parts.of(operand, *self.kinds)
        if operation is not None:
            for match in self.within[0].matches(parts, operation.inputs[0], so_far):
                for whole in self._restricted(operation, match):
                    yield whole.after(operation)

    def _restricted(self, operation: Operator, match: Match) -> Iterator[Match]:
        """The match, if the rest of the operation is as it must be."""
        yield match


class _Clipped(_Function):
    """Cut off at 0 and 1."""

    def _restricted(self, operation: Operator, match: Match) -> Iterator[Match]:
        assert isinstance(operation, Clip), "asked for these only"
        if (operation.min, operation.max) == (0, 1):
            yield match


class _Mean(_Function):
    """The mean over the last axes; a variable stands for the first of these, from the last on."""

    def __init__(self, argument: Term, axis: Variable) -> None:
        super().__init__(argument, ReduceMean)
        self._axis = axis

    def _restricted(self, operation: Operator, match: Match) -> Iterator[Match]:
        assert isinstance(operation, ReduceMean), "asked for these only"
        rank = len(shape_of(operation.input))
        axes = sorted({axis % rank for axis in operation.axes or range(rank)}) if rank else []
        if not axes or not operation.keepdim or axes != list(range(axes[0], rank)):
            return
        first = axes[0] - rank
        if match.values.get(self._axis, first) == first:
            yield match.bound(self._axis, first)


class _Pair(Term):
    """What an operator makes of two operands, which come in either order but for `SUB`."""

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


class _Root(Term):
    """The square root."""

    kinds = (Sqrt, Pow)

    def __init__(self, argument: Term) -> None:
        self.within = (argument,)

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        yield from self._power(parts, operand, so_far, Sqrt, 0.5)

    def inverses(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        """The ways in which an operand is 1 by the root."""
        yield from self._power(parts, operand, so_far, Rsqrt, -0.5)
        operation = parts.of(operand, Reciprocal, Div)
        if operation is None:
            return
        *above, below = operation.inputs[: 2 if isinstance(operation, Div) else 1]
        if not above or parts.number(above[0]) == 1:
            for match in self.matches(parts, below, so_far):
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
    """A term by a square root."""

    kinds = (Div, Mul)

    def __init__(self, above: Term, below: _Root) -> None:
        self.within, self._above, self._below = (above, below), above, below

    def matches(self, parts: Parts, operand: Operand | None, so_far: Match) -> Iterator[Match]:
        operation = parts.of(operand, *self.kinds)
        if operation is None:
            return
        operands, is_division = operation.inputs[:2], isinstance(operation, Div)
        below = self._below.matches if is_division else self._below.inverses
        for first, second in [operands] if is_division else permutations(operands):
            for half in below(parts, second, so_far):
                for whole in self._above.matches(parts, first, half):
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
        for match, chosen in self._chosen(parts, parts.below(operand), so_far, []):
            whole = parts.product(operand, chosen)
            factors = dict(zip(chosen, self._factors.values(), strict=True))
            if whole is not None and whole.is_(self._number, *Counter(factors).elements()):
                yield match.after(*whole.parts)

    def _chosen(
        self, parts: Parts, candidates: Sequence[Operand], match: Match, chosen: list[Operand]
    ) -> Iterator[tuple[Match, list[Operand]]]:
        """The ways to choose operands for the different factors."""
        if len(chosen) == len(self._factors):
            yield match, chosen
            return
        term = self.within[len(chosen)]
        for candidate in candidates:
            if candidate not in chosen:
                for more in term.matches(parts, candidate, match):
                    yield from self._chosen(parts, candidates, more, [*chosen, candidate])


def product(number: float, *factors: Term) -> Term:
    """A number times factors, in any order; one with more structure comes first, to be quick."""
    return _Product(number, factors)


def mean(argument: Term, axis: Variable) -> Term:
    """The mean over the last axes from one on."""
    return _Mean(argument, axis)


def square(argument: Term) -> Term:
    """The square, however it is written."""
    return product(1.0, argument, argument)


def root(argument: Term) -> _Root:
    """The square root."""
    return _Root(argument)


def clipped(argument: Term) -> Term:
    """Cut off at 0 and 1."""
    return _Clipped(argument, Clip)


def erf(argument: Term) -> Term:
    """The error function."""
    return _Function(argument, Erf)


def tanh(argument: Term) -> Term:
    """The hyperbolic tangent."""
    return _Function(argument, Tanh)


def sigmoid(argument: Term) -> Term:
    """The logistic function."""
    return _Function(argument, Sigmoid)


def _term(value: Term | float) -> Term:
    return value if isinstance(value, Term) else _Number(float(value))
