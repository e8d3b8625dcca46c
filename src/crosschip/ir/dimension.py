"""Symbolic tensor sizes.

A `Dimension` is a polynomial with integer coefficients over named sizes, and over floor quotients
and minima of such polynomials: `(H + 1) // 2`, `N * H * W`, `min(64, S)`. It is kept in a normal
form, so that two ways of computing a size compare equal. A size that normalizes to a constant is a
plain `int`.

A model file can describe sizes whose expressions grow without limit. An expression that exceeds the
limits below becomes an unknown size.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Union

from crosschip.ir.errors import InputError

Dim = Union[int, "Dimension"]
Shape = tuple[Dim, ...]

MAX_SIZE = 2**63 - 1
"""The largest size of an axis in engines (int64), and the largest coefficient."""

_unknown_counter = itertools.count()

_MAX_PRODUCTS = 1024
"""The largest number of terms that are multiplied to multiply two expressions."""

_MAX_KEY_LENGTH = 4096
"""The largest length of an expression's key, which limits its terms and its degree."""

_MAX_DEPTH = 16
"""The deepest nesting of quotients and minima."""

_MAX_OPERANDS = 16
"""The largest number of operands of a minimum."""

_MAX_STEPS = 64
"""The largest number of expressions examined to prove that one is not negative."""


class _Atom:
    """Opaque factor of a term; equal to factors with the same key."""

    __slots__ = ("key",)

    parts: Sequence[Dim] = ()
    """The operands of a quotient or minimum."""

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

    def bounds(self, steps: Iterator[int]) -> Sequence[Dim]:
        """Return upper bounds of the atom, as far as `steps` suffice to prove them."""
        return ()


class _Name(_Atom):
    """Named size, or an unknown one, which equals only itself."""

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


class _Quotient(_Atom):
    """`numerator // denominator`, rounded towards minus infinity; 0 if the denominator is 0."""

    __slots__ = ("denominator", "numerator", "parts")

    def __init__(self, numerator: Dim, denominator: Dim) -> None:
        super().__init__(f"({_key(numerator)})//({_key(denominator)})")
        self.numerator = numerator
        self.denominator = denominator
        self.parts = (numerator, denominator)

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


class _Minimum(_Atom):
    """Minimum of two or more expressions."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Dim]) -> None:
        self.parts = tuple(
            sorted(parts, key=lambda part: (isinstance(part, Dimension), _key(part)))
        )
        super().__init__(f"min({','.join(map(_key, self.parts))})")

    def __str__(self) -> str:
        return f"min({', '.join(map(str, self.parts))})"

    def evaluate(self, sizes: Mapping[str, Dim]) -> Dim:
        return minimum(*(substitute(part, sizes) for part in self.parts))

    def bounds(self, steps: Iterator[int]) -> Sequence[Dim]:
        return self.parts

    def plain(self, encode: Callable[[Dim], object]) -> object:
        return [_MINIMUM, *map(encode, self.parts)]


_DIVIDE, _MINIMUM = "//", "min"
"""The names of quotient and minimum in plain data."""

_Monomial = tuple[_Atom, ...]


class Dimension:
    """Size given by an expression; immutable and hashable.

    Attributes:
        key: a text that is equal for equal expressions.
        name: the name if the expression is a single named size, else `None`.
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
        """Return the expression's value for these values of named sizes.

        Raises:
            InputError: the value of a named size is missing.
        """
        for name in sorted(self.names):
            if name not in sizes:
                known = ", ".join(sizes) or "none"
                raise InputError(f"size {self}: {name!r} has no value; sizes with one: {known}")
        value = substitute(self, sizes)
        assert isinstance(value, int), "all names in the expression have values"
        return value

    @property
    def names(self) -> frozenset[str]:
        """Return the names of all sizes in the expression."""
        names: set[str] = set()
        for atom in itertools.chain.from_iterable(self._terms):
            if isinstance(atom, _Name):
                names.add(atom.name)
            names.update(*(p.names for p in atom.parts if isinstance(p, Dimension)))
        return frozenset(names)


def symbol(name: str) -> Dimension:
    """Return the size with the name."""
    return Dimension({(_Name(name),): 1})


def name_of(dimension: Dim) -> str | None:
    """Return the name of a single named size; `None` for a number or another expression."""
    return dimension.name if isinstance(dimension, Dimension) else None


def unknown() -> Dimension:
    """Return a new unknown size, which equals only itself and prints as `?`."""
    return symbol(f"?{next(_unknown_counter)}")


def is_unknown(dimension: Dim) -> bool:
    """Return whether the size depends on an unknown size."""
    return isinstance(dimension, Dimension) and any(n.startswith("?") for n in dimension.names)


def ceil_div(numerator: Dim, denominator: Dim) -> Dim:
    """Return `numerator / denominator` rounded up; the denominator must be positive."""
    return (numerator + denominator - 1) // denominator


def minimum(*parts: Dim) -> Dim:
    """Return the minimum of expressions."""
    candidates: list[Dim] = []
    for part in itertools.chain.from_iterable(map(_operands_of_minimum, parts)):
        if len(candidates) > _MAX_OPERANDS:
            break
        if not any(is_natural(part - other) for other in candidates):
            candidates = [other for other in candidates if not is_natural(other - part)]
            candidates.append(part)
    if len(candidates) == 1:
        return candidates[0]
    if len(candidates) > _MAX_OPERANDS:
        return _unknown_of_sign(all(map(is_natural, candidates)))
    shared = min(_terms(part).get((), 0) for part in candidates)
    return _of_atom(_Minimum([part - shared for part in candidates])) + shared


def is_natural(value: Dim) -> bool:
    """Return whether an expression is provably 0 or more for all values of its sizes."""
    return _is_natural(value, iter(range(_MAX_STEPS)))


def is_minimum_of(value: Dim, other: Dim) -> bool:
    """Return whether an expression is the minimum of another one and a number above 1."""
    parts = _operands_of_minimum(value)
    return len(parts) == 2 and other in parts and any(isinstance(p, int) and p > 1 for p in parts)


def product(shape: Shape) -> Dim:
    """Return the number of elements of a tensor with the shape."""
    total: Dim = 1
    for dimension in shape:
        total = total * dimension
    return total


def substitute(dimension: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """Return the expression with named sizes replaced by other sizes."""
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
    """Return the expression as plain data: a list of `[coefficient, factor, …]`.

    A factor is a name, `["//", numerator, denominator]` or `["min", operand, …]`; `encode` converts
    numerator, denominator and operands.
    """
    return [
        [coefficient, *(atom.plain(encode) for atom in monomial)]
        for monomial, coefficient in dimension._terms.items()
    ]


def exact_quotient(numerator: Dim, denominator: Dim) -> Dim:
    """Return `numerator / denominator` of sizes that divide without remainder."""
    if isinstance(numerator, int) and isinstance(denominator, int):
        return numerator // denominator if denominator else 0
    divisor = _terms(denominator)
    if len(divisor) == 1:
        (monomial, coefficient), *_ = divisor.items()
        divided: dict[_Monomial, int] = {}
        for factors, numerator_coefficient in _terms(numerator).items():
            rest = _without(factors, monomial)
            if rest is None or numerator_coefficient % coefficient:
                break
            divided[rest] = numerator_coefficient // coefficient
        else:
            return _normal(divided)
    return numerator // denominator


def _name(terms: Mapping[_Monomial, int]) -> str | None:
    """Return the name if the terms are a single named size, else `None`."""
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
    """Return a quotient without a whole part; a quotient of a quotient becomes a single one."""
    for monomial, coefficient in _terms(numerator).items():
        match monomial, coefficient:
            case (_Quotient(denominator=int(inner)) as atom,), 1:
                rest = numerator - Dimension({monomial: 1})
                return (rest * inner + atom.numerator) // (inner * denominator)
    return _of_atom(_Quotient(numerator, denominator))


def _of_atom(atom: _Atom) -> Dim:
    """Return the expression that consists of one quotient or minimum."""
    if _depth(atom) > _MAX_DEPTH:
        return _unknown_of_sign(_is_natural_atom(atom, iter(range(_MAX_STEPS))))
    return _normal({(atom,): 1})


def _depth(atom: _Atom) -> int:
    """Return the nesting depth of quotients and minima in an atom."""
    inner = (part_atom for part in atom.parts for term in _terms(part) for part_atom in term)
    return 1 + max(map(_depth, inner), default=0) if atom.parts else 0


def _unknown_of_sign(natural: bool) -> Dim:
    """Return an unknown size, or an unknown number that may be negative."""
    return unknown() if natural else unknown() - unknown()


def _without(monomial: _Monomial, divisor: _Monomial) -> _Monomial | None:
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _operands_of_minimum(value: Dim) -> Sequence[Dim]:
    """Return the operands of a minimum; for another expression, the expression."""
    match list(_terms(value).items()):
        case [((_Minimum(parts=parts),), 1)]:
            return parts
    return (value,)


def _is_natural(value: Dim, steps: Iterator[int]) -> bool:
    """Return whether an expression is provably 0 or more within the remaining steps."""
    if next(steps, None) is None:
        return False
    for monomial, coefficient in _terms(value).items():
        if coefficient < 0 and len(monomial) == 1:
            # The subtracted atom is at most each of its upper bounds.
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
    # The key formats coefficients, and Python refuses to format numbers of thousands of digits.
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
