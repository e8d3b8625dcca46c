"""Tensor sizes that are known only when a model runs.

A `Dimension` is a polynomial with integer coefficients over named sizes, and over floor quotients
and minima of such polynomials, kept in a normal form, so that two ways of computing one size
compare equal. That is all that shape inference needs: `(H + 1) // 2`, `N * H * W`, `min(64, S)`.
A size that normalises to a constant is a plain `int`.

A file can describe sizes whose expressions grow without end, as by multiplying a sum by itself
again and again. An expression beyond the limits below becomes a size about which nothing is known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Protocol, TypeVar, Union

from crosschip.ir.errors import InputError

Dim = Union[int, "Dimension"]
Shape = tuple[Dim, ...]

MAX_SIZE = 2**63 - 1
"""The most elements along an axis, as engines count them; no coefficient is larger either."""

_unknown_counter = itertools.count()

_MAX_PRODUCTS = 1024
"""The most products of two terms that are computed to multiply two expressions."""

_MAX_KEY_LENGTH = 4096
"""The most characters in the key of a computed expression: they bound its terms and its degree."""

_MAX_DEPTH = 16
"""The most quotients and minima that contain each other."""

_MAX_PARTS = 16
"""The most expressions of which the least is an expression."""

_MAX_STEPS = 64
"""The most expressions that are looked at to tell whether one can be negative."""


V = TypeVar("V")


class SizeArithmetic(Protocol[V]):
    """What values of some kind, such as operations of a compiler's language, are made by.

    `express` calls these for the parts of a size, the inner ones first.
    """

    def constant(self, value: int) -> V:
        """The value of a number, which may be negative."""

    def size(self, name: str) -> V:
        """The value of a named size."""

    def add(self, a: V, b: V) -> V:
        """The sum."""

    def multiply(self, a: V, b: V) -> V:
        """The product."""

    def divide(self, a: V, b: V) -> V:
        """The quotient, rounded towards minus infinity; 0 where `b` is 0."""

    def minimum(self, a: V, b: V) -> V:
        """The lesser one."""


class _Atom:
    """A factor that the polynomial does not look into; equal to another with the same key."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Atom) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __lt__(self, other: _Atom) -> bool:
        return self.key < other.key

    def evaluate(self, sizes: Mapping[str, Dim]) -> Dim:
        raise NotImplementedError("each kind of atom has its own")

    def plain(self, encode: Callable[[Dim], object]) -> object:
        raise NotImplementedError("each kind of atom has its own")

    def express(self, arithmetic: SizeArithmetic[V]) -> V:
        raise NotImplementedError("each kind of atom has its own")

    @property
    def parts(self) -> Sequence[Dim]:
        """The expressions that it is made of."""
        return ()

    def bounds(self, steps: Iterator[int]) -> Sequence[Dim]:
        """Expressions that it is not above, as far as `steps` suffice to show this."""
        return ()


class _Name(_Atom):
    """A named size, or an anonymous one that equals nothing but itself."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__(repr(name))
        self.name = name

    def __str__(self) -> str:
        return "?" if self.name.startswith("?") else self.name

    def evaluate(self, sizes: Mapping[str, Dim]) -> Dim:
        size = sizes.get(self.name)
        return Dimension({(self,): 1}) if size is None else size

    def plain(self, encode: Callable[[Dim], object]) -> object:
        return self.name

    def express(self, arithmetic: SizeArithmetic[V]) -> V:
        return arithmetic.size(self.name)


class _Quotient(_Atom):
    """`numerator // denominator`, rounded towards minus infinity; by 0, it is 0."""

    __slots__ = ("denominator", "numerator")

    def __init__(self, numerator: Dim, denominator: Dim) -> None:
        super().__init__(f"({_key(numerator)})//({_key(denominator)})")
        self.numerator = numerator
        self.denominator = denominator

    def __str__(self) -> str:
        return f"{_parenthesised(self.numerator)} // {_parenthesised(self.denominator)}"

    def evaluate(self, sizes: Mapping[str, Dim]) -> Dim:
        denominator = substitute(self.denominator, sizes)
        return 0 if denominator == 0 else substitute(self.numerator, sizes) // denominator

    def bounds(self, steps: Iterator[int]) -> Sequence[Dim]:
        if isinstance(self.denominator, int):
            return ()
        if not all(_is_natural(part, steps) for part in self.parts):
            return ()
        exact = exact_quotient(self.numerator, self.denominator)
        return [self.numerator if exact == Dimension({(self,): 1}) else exact]

    def plain(self, encode: Callable[[Dim], object]) -> object:
        return [_DIVIDE, *map(encode, self.parts)]

    def express(self, arithmetic: SizeArithmetic[V]) -> V:
        numerator = express(self.numerator, arithmetic)
        return arithmetic.divide(numerator, express(self.denominator, arithmetic))

    @property
    def parts(self) -> Sequence[Dim]:
        return self.numerator, self.denominator


class _Least(_Atom):
    """The least of two or more expressions."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Dim]) -> None:
        self._parts = tuple(
            sorted(parts, key=lambda part: (isinstance(part, Dimension), _key(part)))
        )
        super().__init__(f"min({','.join(map(_key, self._parts))})")

    def __str__(self) -> str:
        return f"min({', '.join(map(str, self._parts))})"

    def evaluate(self, sizes: Mapping[str, Dim]) -> Dim:
        return least(*(substitute(part, sizes) for part in self._parts))

    def bounds(self, steps: Iterator[int]) -> Sequence[Dim]:
        return self._parts

    def plain(self, encode: Callable[[Dim], object]) -> object:
        return [_LEAST, *map(encode, self._parts)]

    def express(self, arithmetic: SizeArithmetic[V]) -> V:
        return reduce(arithmetic.minimum, [express(part, arithmetic) for part in self._parts])

    @property
    def parts(self) -> Sequence[Dim]:
        return self._parts


_DIVIDE, _LEAST = "//", "min"
"""The names of functions of sizes in plain data."""

_Monomial = tuple[_Atom, ...]


class Dimension:
    """A size given by an expression; immutable and hashable.

    Attributes:
        key: equal for equal expressions.
        name: the size's name, if the expression is just that.
    """

    __slots__ = ("_terms", "key", "name")

    def __init__(self, terms: Mapping[_Monomial, int]) -> None:
        self._terms = dict(sorted(terms.items())) if len(terms) > 1 else dict(terms)
        self.name = _name(self._terms)
        self.key = "+".join(
            "*".join([str(coefficient), *(atom.key for atom in monomial)])
            for monomial, coefficient in self._terms.items()
        )

    def __add__(self, other: Dim) -> Dim:
        terms = dict(self._terms)
        for monomial, coefficient in _terms(other).items():
            _accumulate(terms, monomial, coefficient)
        return _normal(terms)

    def __mul__(self, other: Dim) -> Dim:
        factors = _terms(other)
        if len(self._terms) * len(factors) > _MAX_PRODUCTS:
            return _unknown_of_sign(is_natural(self) and is_natural(other))
        terms: dict[_Monomial, int] = {}
        for a, coefficient_a in self._terms.items():
            for b, coefficient_b in factors.items():
                product = tuple(sorted(a + b))
                _accumulate(terms, product, coefficient_a * coefficient_b)
        return _normal(terms)

    def __floordiv__(self, other: Dim) -> Dim:
        return _divide(self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return _divide(other, self)

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + other * -1

    def __rsub__(self, other: int) -> Dim:
        return -self + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dimension) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        if list(self._terms.values()) == [1] and len(next(iter(self._terms))) == 1:
            return str(next(iter(self._terms))[0])
        text = ""
        for monomial, coefficient in sorted(self._terms.items(), key=lambda item: item[0] == ()):
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} " if text else sign.replace("+", "")
            text += _monomial_text(monomial, abs(coefficient))
        return text

    def __repr__(self) -> str:
        return f"Dimension({self})"

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The number that the expression is where named sizes have these values.

        Raises:
            InputError: a size that it depends on is not among them.
        """
        return express(self, _Numbers(sizes, str(self)))

    @property
    def names(self) -> frozenset[str]:
        """The names of all sizes that the expression depends on."""
        names: set[str] = set()
        for atom in itertools.chain.from_iterable(self._terms):
            if isinstance(atom, _Name):
                names.add(atom.name)
            names.update(*(p.names for p in atom.parts if isinstance(p, Dimension)))
        return frozenset(names)


class _Numbers:
    """Arithmetic on numbers, of an expression that errors tell."""

    def __init__(self, sizes: Mapping[str, int], expression: str) -> None:
        self._sizes = sizes
        self._expression = expression

    def constant(self, value: int) -> int:
        return value

    def size(self, name: str) -> int:
        try:
            return self._sizes[name]
        except KeyError:
            known = ", ".join(self._sizes) or "none"
            raise InputError(
                f"size {self._expression}: {name!r} has no value; sizes with one: {known}"
            ) from None

    def add(self, a: int, b: int) -> int:
        return a + b

    def multiply(self, a: int, b: int) -> int:
        return a * b

    def divide(self, a: int, b: int) -> int:
        return a // b if b else 0

    def minimum(self, a: int, b: int) -> int:
        return min(a, b)


def express(dimension: Dim, arithmetic: SizeArithmetic[V]) -> V:
    """A size, which may be a number, in values of another kind.

    So an emitter writes a size of an output in its compiler's language, from the sizes of inputs.
    A sum has its terms in the order of the normal form, so equal sizes are expressed alike.
    """
    terms = []
    for monomial, coefficient in _terms(dimension).items():
        factors = [atom.express(arithmetic) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.append(arithmetic.constant(coefficient))
        terms.append(reduce(arithmetic.multiply, factors))
    return reduce(arithmetic.add, terms) if terms else arithmetic.constant(0)


def symbol(name: str) -> Dimension:
    """The size called `name`."""
    return Dimension({(_Name(name),): 1})


def name_of(dimension: Dim) -> str | None:
    """The name of a size that is just a name; `None` for a number or a larger expression."""
    return dimension.name if isinstance(dimension, Dimension) else None


def unknown() -> Dimension:
    """A size about which nothing is known: it equals only itself and prints as `?`."""
    return symbol(f"?{next(_unknown_counter)}")


def is_unknown(dimension: Dim) -> bool:
    """Tell whether the size is, or depends on, one about which nothing is known."""
    return isinstance(dimension, Dimension) and any(n.startswith("?") for n in dimension.names)


def ceil_div(numerator: Dim, denominator: Dim) -> Dim:
    """`numerator / denominator`, rounded towards plus infinity; the denominator is positive."""
    return (numerator + denominator - 1) // denominator


def least(*parts: Dim) -> Dim:
    """The least of some expressions."""
    candidates: list[Dim] = []
    for part in itertools.chain.from_iterable(map(_parts_of_least, parts)):
        if len(candidates) > _MAX_PARTS:
            break
        if not any(is_natural(part - other) for other in candidates):
            candidates = [other for other in candidates if not is_natural(other - part)]
            candidates.append(part)
    if len(candidates) == 1:
        return candidates[0]
    if len(candidates) > _MAX_PARTS:
        return _unknown_of_sign(all(map(is_natural, candidates)))
    shared = min(_terms(part).get((), 0) for part in candidates)
    return _of_atom(_Least([part - shared for part in candidates])) + shared


def is_natural(value: Dim) -> bool:
    """Tell whether an expression over sizes is seen to be 0 or more, whatever they are."""
    return _is_natural(value, iter(range(_MAX_STEPS)))


def is_least_of(value: Dim, other: Dim) -> bool:
    """Tell whether an expression is the minimum of another one and of a number of 2 or more."""
    parts = _parts_of_least(value)
    return len(parts) == 2 and other in parts and any(isinstance(p, int) and p > 1 for p in parts)


def product(shape: Shape) -> Dim:
    """The number of elements in a tensor of the shape."""
    total: Dim = 1
    for dimension in shape:
        total = total * dimension
    return total


def substitute(dimension: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """The expression with named sizes replaced by the given ones."""
    if isinstance(dimension, int):
        return dimension
    if dimension.name is not None:
        return sizes.get(dimension.name, dimension)
    total: Dim = 0
    for monomial, coefficient in dimension._terms.items():
        value: Dim = coefficient
        for atom in monomial:
            value = value * atom.evaluate(sizes)
        total = total + value
    return total


def terms_of(dimension: Dimension, encode: Callable[[Dim], object]) -> list[object]:
    """The expression as plain data: a list of `[coefficient, factor, …]`.

    A factor is a name, or a list of "//" and a numerator and a denominator, or of "min" and the
    expressions of which it is the least, all as `encode` gives them.
    """
    return [
        [coefficient, *(atom.plain(encode) for atom in monomial)]
        for monomial, coefficient in dimension._terms.items()
    ]


def from_terms(terms: Sequence[Any], decode: Callable[[object], Dim]) -> Dim:
    """The expression that `terms_of` described; `TypeError` or `ValueError` if it did not."""
    total: Dim = 0
    for coefficient, *factors in terms:
        value: Dim = int(coefficient)
        for factor in factors:
            if isinstance(factor, str):
                value = value * symbol(factor)
            else:
                kind, *parts = factor
                value = value * _expression(kind, list(map(decode, parts)))
        total = total + value
    return total


def _expression(kind: str, parts: Sequence[Dim]) -> Dim:
    if kind == _LEAST and parts:
        return least(*parts)
    if kind != _DIVIDE:
        raise ValueError(f"{kind!r} is no function of sizes")
    numerator, denominator = parts
    return numerator // denominator


def exact_quotient(numerator: Dim, denominator: Dim) -> Dim:
    """`numerator / denominator` for sizes that are known to divide without remainder."""
    if isinstance(numerator, int) and isinstance(denominator, int):
        return numerator // denominator if denominator else 0
    divisor = _terms(denominator)
    if len(divisor) == 1:
        (monomial, coefficient), *_ = divisor.items()
        divided: dict[_Monomial, int] = {}
        for own, own_coefficient in _terms(numerator).items():
            rest = _without(own, monomial)
            if rest is None or own_coefficient % coefficient:
                break
            divided[rest] = own_coefficient // coefficient
        else:
            return _normal(divided)
    return numerator // denominator


def _name(terms: Mapping[_Monomial, int]) -> str | None:
    """The name that the terms come to, if they are nothing else."""
    if len(terms) == 1:
        ((monomial, coefficient),) = terms.items()
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], _Name):
            return monomial[0].name
    return None


def _divide(numerator: Dim, denominator: Dim) -> Dim:
    if not isinstance(denominator, int) or denominator <= 0:
        if numerator == denominator:
            return 1
        return _of_atom(_Quotient(numerator, denominator))
    whole: dict[_Monomial, int] = {}
    rest: dict[_Monomial, int] = {}
    for monomial, coefficient in _terms(numerator).items():
        quotient, remainder = divmod(coefficient, denominator)
        _accumulate(whole, monomial, quotient)
        _accumulate(rest, monomial, remainder)
    shared = math.gcd(denominator, *(rest[monomial] for monomial in rest if monomial))
    if shared == denominator:
        return _normal(whole)
    reduced: dict[_Monomial, int] = {}
    for monomial, coefficient in rest.items():
        _accumulate(reduced, monomial, coefficient // shared)
    return _quotient(_normal(reduced), denominator // shared) + _normal(whole)


def _quotient(numerator: Dim, denominator: int) -> Dim:
    """A quotient that nothing can be taken out of; one of a quotient becomes a single one."""
    for monomial, coefficient in _terms(numerator).items():
        match monomial, coefficient:
            case (_Quotient(denominator=int(inner)) as atom,), 1:
                rest = numerator - Dimension({monomial: 1})
                return (rest * inner + atom.numerator) // (inner * denominator)
    return _of_atom(_Quotient(numerator, denominator))


def _of_atom(atom: _Atom) -> Dim:
    """The expression that is a quotient or minimum."""
    if _depth(atom) > _MAX_DEPTH:
        return _unknown_of_sign(_is_natural_atom(atom, iter(range(_MAX_STEPS))))
    return _normal({(atom,): 1})


def _depth(atom: _Atom) -> int:
    """The number of quotients and minima that contain each other in an atom."""
    inner = (own for part in atom.parts for monomial in _terms(part) for own in monomial)
    return 1 + max(map(_depth, inner), default=0) if atom.parts else 0


def _unknown_of_sign(natural: bool) -> Dim:
    """A size about which nothing is known, or a number that may also be negative."""
    return unknown() if natural else unknown() - unknown()


def _without(monomial: _Monomial, divisor: _Monomial) -> _Monomial | None:
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _parts_of_least(value: Dim) -> Sequence[Dim]:
    """The expressions that another one is the least of, if it is just that; else it itself."""
    match list(_terms(value).items()):
        case [((_Least(parts=parts),), 1)]:
            return parts
    return (value,)


def _is_natural(value: Dim, steps: Iterator[int]) -> bool:
    """Tell whether an expression is seen to be 0 or more before the steps are used up."""
    if next(steps, None) is None:
        return False
    for monomial, coefficient in _terms(value).items():
        if coefficient < 0 and len(monomial) == 1:
            # What is taken away is at most any of the parts that it is the least of.
            rest = value - Dimension({monomial: coefficient})
            bounds = monomial[0].bounds(steps)
            return any(_is_natural(rest + part * coefficient, steps) for part in bounds)
        if coefficient < 0 or not all(_is_natural_atom(atom, steps) for atom in monomial):
            return False
    return True


def _is_natural_atom(atom: _Atom, steps: Iterator[int]) -> bool:
    if isinstance(atom, _Quotient) and isinstance(atom.denominator, int):
        return atom.denominator > 0 and _is_natural(atom.numerator, steps)
    return all(_is_natural(part, steps) for part in atom.parts)


def _accumulate(terms: dict[_Monomial, int], monomial: _Monomial, coefficient: int) -> None:
    total = terms.get(monomial, 0) + coefficient
    if total:
        terms[monomial] = total
    else:
        terms.pop(monomial, None)


def _terms(value: Dim) -> Mapping[_Monomial, int]:
    if isinstance(value, Dimension):
        return value._terms
    return {(): value} if value else {}


def _normal(terms: Mapping[_Monomial, int]) -> Dim:
    if not terms:
        return 0
    if set(terms) == {()}:
        return terms[()]
    # Python refuses to write numbers of thousands of digits, which the key would need.
    if all(-MAX_SIZE <= coefficient <= MAX_SIZE for coefficient in terms.values()):
        value = Dimension(terms)
        if len(value.key) <= _MAX_KEY_LENGTH:
            return value
    steps = iter(range(_MAX_STEPS))
    return _unknown_of_sign(
        all(
            coefficient > 0 and all(_is_natural_atom(atom, steps) for atom in monomial)
            for monomial, coefficient in terms.items()
        )
    )


def _key(value: Dim) -> str:
    return value.key if isinstance(value, Dimension) else str(value)


def _monomial_text(monomial: _Monomial, coefficient: int) -> str:
    factors = [f"({atom})" if isinstance(atom, _Quotient) else str(atom) for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return " * ".join(factors)


def _parenthesised(value: Dim) -> str:
    text = str(value)
    return f"({text})" if " " in text else text
