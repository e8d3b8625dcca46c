"""Sizes that are known only when a model runs: the arithmetic is Python's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crosschip.ir import Dim, Dimension, InputError, express, symbol, unknown
from crosschip.ir.dimension import (
    ceil_div,
    exact_quotient,
    from_terms,
    is_natural,
    is_unknown,
    least,
    name_of,
    product,
    substitute,
    terms_of,
)

N, M, H, W = symbol("N"), symbol("M"), symbol("H"), symbol("W")


@dataclass(frozen=True)
class Expression:
    """One expression twice: as a `Dim`, and as a function that computes it with Python's ints."""

    dim: Dim
    compute: Callable[[Mapping[str, int]], int]

    def __repr__(self) -> str:
        return str(self.dim)


def leaf(value: int | str) -> Expression:
    if isinstance(value, str):
        return Expression(symbol(value), lambda sizes: sizes[value])
    return Expression(value, lambda sizes: value)


def combined(parts: tuple[str, Expression, Expression, int]) -> Expression:
    operator, a, b, k = parts
    match operator:
        case "+":
            return Expression(a.dim + b.dim, lambda s: a.compute(s) + b.compute(s))
        case "-":
            return Expression(a.dim - b.dim, lambda s: a.compute(s) - b.compute(s))
        case "*":
            return Expression(a.dim * b.dim, lambda s: a.compute(s) * b.compute(s))
        case "neg":
            return Expression(-a.dim, lambda s: -a.compute(s))
        case "min":
            return Expression(least(a.dim, b.dim), lambda s: min(a.compute(s), b.compute(s)))
        case "//":
            return Expression(a.dim // k, lambda s: a.compute(s) // k)
        case _:
            return Expression(ceil_div(a.dim, k), lambda s: -(-a.compute(s) // k))


OPERATORS = ("+", "-", "*", "neg", "//", "ceil", "min")
expressions = st.recursive(
    st.one_of(st.integers(-9, 9), st.sampled_from("NMH")).map(leaf),
    lambda inner: st.tuples(st.sampled_from(OPERATORS), inner, inner, st.integers(1, 6)).map(
        combined
    ),
    max_leaves=8,
)
sizes = st.fixed_dictionaries({name: st.integers(0, 40) for name in "NMH"})
linear = st.tuples(*[st.integers(-6, 6)] * 3).map(lambda c: c[0] * N + c[1] * M + c[2])


@given(expressions, sizes)
def test_arithmetic_is_pythons(expression: Expression, sizes: dict[str, int]) -> None:
    assert substitute(expression.dim, sizes) == expression.compute(sizes)


@given(expressions, sizes, sizes)
def test_substitution_may_come_in_two_steps(
    expression: Expression, first: dict[str, int], second: dict[str, int]
) -> None:
    halfway = substitute(expression.dim, {"N": first["N"]})
    assert substitute(halfway, second) == expression.compute({**second, "N": first["N"]})


@given(expressions, expressions, sizes)
def test_an_expression_replaces_a_name(
    outer: Expression, inner: Expression, sizes: dict[str, int]
) -> None:
    assume(inner.compute(sizes) >= 0)  # as every size is
    replaced = substitute(outer.dim, {"N": inner.dim})
    assert substitute(replaced, sizes) == outer.compute({**sizes, "N": inner.compute(sizes)})


@given(expressions, st.integers(0, 9), sizes)
def test_a_named_divisor_divides(expression: Expression, n: int, sizes: dict[str, int]) -> None:
    """By 0, nothing is left."""
    quotient = expression.dim // symbol("D")
    expected = expression.compute(sizes) // n if n else 0
    assert substitute(quotient, {**sizes, "D": n}) == expected


@given(expressions, expressions, sizes)
def test_a_quotient_is_not_above_what_it_is_of(
    one: Expression, other: Expression, sizes: dict[str, int]
) -> None:
    assume(is_natural(one.dim) and is_natural(other.dim) and other.dim != 0)
    for whole in (one.dim, one.dim * other.dim):
        quotient = whole // other.dim
        found = substitute(whole - quotient, sizes)
        assert not is_natural(whole - quotient) or is_natural(found)
    assert is_natural(N - (N * M) // M)
    assert not is_natural((N * M) // M - N)


@given(st.integers(-99, 99), st.integers(1, 9))
def test_a_number_is_divided_by_a_name(numerator: int, n: int) -> None:
    assert substitute(numerator // N, {"N": n}) == numerator // n


@given(expressions, expressions, expressions)
def test_sums_and_products_have_one_normal_form(
    a: Expression, b: Expression, c: Expression
) -> None:
    x, y, z = a.dim, b.dim, c.dim
    for left, right in (
        (x + y, y + x),
        (x * y, y * x),
        ((x + y) + z, x + (y + z)),
        ((x * y) * z, x * (y * z)),
        ((x + y) * z, x * z + y * z),
        (x - y, -(y - x)),
        (x - x, 0),
        (x * 0, 0),
        (x * 1, x),
        (x + 0, x),
    ):
        assert left == right
        assert hash(left) == hash(right)
        assert str(left) == str(right)


@given(expressions, st.integers(1, 9), st.data())
def test_a_quotient_gives_up_what_divides(a: Expression, k: int, data: st.DataObject) -> None:
    remainder = data.draw(st.integers(0, k - 1))
    assert (a.dim * k + remainder) // k == a.dim
    assert (a.dim + N * k) // k == a.dim // k + N


@given(linear, st.integers(1, 6), st.integers(1, 6), st.integers(0, 9))
def test_a_quotient_of_a_quotient_is_one_quotient(a: Dim, m: int, n: int, offset: int) -> None:
    assert a // m // n == a // (m * n)
    assert (a // m + offset) // n == (a + offset * m) // (m * n)
    assert (a * m) // (m * n) == a // n


@given(linear, st.integers(1, 6))
def test_rounding_up_is_rounding_down_from_one_less_than_a_step_above(a: Dim, k: int) -> None:
    assert ceil_div(a, k) == (a + k - 1) // k


def test_two_ways_to_a_quarter_of_an_image_are_equal() -> None:
    def convolved(size: Dim, kernel: int, stride: int, pad: int) -> Dim:
        return (size + 2 * pad - kernel) // stride + 1

    twice = convolved(convolved(H, 3, 2, 1), 3, 2, 1)
    assert twice == convolved(H, 3, 4, 1) == ceil_div(ceil_div(H, 2), 2)
    assert str(twice) == "(H + 3) // 4"


@given(expressions, st.sampled_from([N, N * M, 2 * N, 6 * N * N]), sizes)
def test_an_exact_quotient_cancels_a_product(a: Expression, b: Dim, sizes: dict[str, int]) -> None:
    quotient = exact_quotient(a.dim * b, b)
    assert quotient == a.dim


@pytest.mark.parametrize(
    ("numerator", "denominator", "quotient"),
    [
        (12, 4, 3),
        (0, N, 0),
        (0, 0, 0),  # a tensor without elements has any number of rows of none
        (6 * N * H, 3 * H, 2 * N),
        (N, N, 1),
        (N + 1, N + 1, 1),
        (N * M + N, N, M + 1),
    ],
)
def test_exact_quotients(numerator: Dim, denominator: Dim, quotient: Dim) -> None:
    assert exact_quotient(numerator, denominator) == quotient


@given(st.integers(1, 20), st.integers(1, 20))
def test_an_exact_quotient_that_does_not_cancel_is_still_right(n: int, m: int) -> None:
    quotient = exact_quotient(12 * N, 5 * M)
    assert substitute(quotient, {"N": 5 * m * n, "M": m}) == 12 * n


@pytest.mark.parametrize(
    ("dimension", "text"),
    [
        (N, "N"),
        (2 * N + 3, "2 * N + 3"),
        (3 - N, "-N + 3"),
        (N * M - 1, "M * N - 1"),
        ((H + 1) // 2, "(H + 1) // 2"),
        (2 * ((H - 1) // 2 + 1), "2 * ((H + 1) // 2)"),
        (N * ((H + 1) // 2), "N * ((H + 1) // 2)"),
        (N // M, "N // M"),
        (unknown(), "?"),
    ],
)
def test_expressions_are_readable(dimension: Dim, text: str) -> None:
    assert str(dimension) == text


def test_a_size_that_comes_to_a_number_is_a_number() -> None:
    for dimension in (N - N + 4, (4 * N + 7) // 4 - N + 3, exact_quotient(4 * N, N), N // N + 3):
        assert type(dimension) is int
        assert dimension == 4


def test_a_whole_quotient_leaves_nothing_behind() -> None:
    assert (4 * N + 1) // 4 == N
    assert str((4 * N + 1) // 4) == "N"


def test_a_name_that_looks_like_an_expression_is_a_name() -> None:
    for name, expression in {"M*N": M * N, "1*N": N, "(N)//(2)": N // 2, "'N'": N}.items():
        assert symbol(name) != expression
        assert symbol(name) == symbol(name)
        assert substitute(symbol(name), {name: 7, "N": 5, "M": 5}) == 7


def test_nothing_is_equal_to_an_unknown_size_but_itself() -> None:
    a, b = unknown(), unknown()
    assert a == a
    assert a != b
    assert a != N
    assert a - a == 0
    assert a - b != 0


def test_what_depends_on_an_unknown_size_is_unknown() -> None:
    a = unknown()
    assert is_unknown(a)
    assert is_unknown(N * ((a + 1) // 2))
    assert not is_unknown(N)
    assert not is_unknown(3)


@given(expressions)
def test_names_are_those_that_count(expression: Expression) -> None:
    dim = expression.dim
    names = frozenset() if isinstance(dim, int) else dim.names
    assert names <= set("NMH")
    given = dict.fromkeys(names, 5)
    assert isinstance(substitute(dim, given), int)


def test_only_a_bare_name_is_the_name_of_a_size() -> None:
    assert name_of(N) == "N"
    for other in (3, N + 1, 2 * N, N * N, N * M, N // 2):
        assert name_of(other) is None


@given(expressions)
def test_plain_data_and_back(expression: Expression) -> None:
    def encode(dim: Dim) -> object:
        return dim if isinstance(dim, int) else terms_of(dim, encode)

    def decode(data: object) -> Dim:
        return data if isinstance(data, int) else from_terms(data, decode)  # type: ignore[arg-type]  # what encode made

    assert decode(encode(expression.dim)) == expression.dim


@pytest.mark.parametrize("damaged", [[[1, ["min"]]], [[1, ["max", 1, 2]]], [[1, ["//", 1]]]])
def test_plain_data_that_make_no_sense(damaged: Sequence[object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_terms(damaged, lambda data: data)  # type: ignore[arg-type, return-value]  # numbers


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((N, 64), "min(64, N)"),
        ((N, N + 2), "N"),
        ((N * M, N * M + H), "M * N"),
        ((N, least(N, 5)), "min(5, N)"),
        ((N, 0), "0"),
        ((0, N - 1), "min(1, N) - 1"),
        ((N + least(1, N), N + 1), "N + min(1, N)"),
        ((3, 7), "3"),
    ],
)
def test_the_least_of_sizes(parts: Sequence[Dim], text: str) -> None:
    assert str(least(*parts)) == text
    assert least(*reversed(parts)) == least(*parts)


@given(expressions, sizes)
def test_what_is_natural_is_not_below_0(expression: Expression, sizes: dict[str, int]) -> None:
    assert not is_natural(expression.dim) or expression.compute(sizes) >= 0


def test_the_number_of_elements() -> None:
    assert product(()) == 1
    assert product((2, N, 3)) == 6 * N
    assert product((N, 0)) == 0


@given(expressions, expressions)
def test_equality_is_with_sizes_only(a: Expression, b: Expression) -> None:
    assert (a.dim == b.dim) == (str(a.dim) == str(b.dim))
    assert a.dim != "N"
    assert a.dim is not None


def is_bounded(value: Dim) -> bool:
    """Tell whether a size is written with few terms, or is one about which nothing is known."""
    return isinstance(value, int) or len(value.key) <= 4096


def test_a_product_of_sums_does_not_grow_without_end() -> None:
    size: Dim = symbol("A") + symbol("B") + symbol("C")
    for step in range(40):
        size = size * size + symbol(f"D{step % 3}")
        assert is_bounded(size)
    assert is_unknown(size)


def test_a_power_and_a_coefficient_do_not_grow_without_end() -> None:
    power, multiple = N * 1, 3 * N
    for _ in range(70):
        power, multiple = power * power, multiple * 2**60 + 1
        assert is_bounded(power)
        assert is_bounded(multiple)
    assert is_unknown(power)
    assert is_unknown(multiple)


@pytest.mark.slow
def test_quotients_and_minima_do_not_contain_each_other_without_end() -> None:
    nested: Dim = N
    for step in range(5000):
        nested = least((nested + step) // symbol(f"D{step}"), symbol(f"E{step}") + 1)
        assert is_bounded(nested)
        assert str(nested)
        assert not is_natural(-1 - nested)
        assert is_bounded(substitute(nested, {"D0": 3}))


def test_a_least_of_very_many_is_unknown() -> None:
    assert is_unknown(least(*(symbol(f"N{i}") for i in range(5000))))


def test_whether_a_difference_is_natural_is_not_searched_without_end() -> None:
    """Each minimum that is taken away has two bounds, so that there are 2**60 to look at."""
    value: Dim = N
    for i in range(60):
        value = value - least(symbol(f"A{i}"), symbol(f"B{i}"))
    assert not is_natural(value)


def test_what_is_too_large_to_write_is_unknown_and_may_be_negative() -> None:
    negative = symbol("A") - symbol("B")
    for _ in range(6):
        negative = negative * (symbol("C") - symbol("D") + negative)
    assert is_unknown(negative)
    assert not is_natural(negative)
    positive = N + M + H + W + 1
    for _ in range(6):
        positive = positive * positive
    assert is_unknown(positive)
    assert is_natural(positive)


class Text:
    """Arithmetic that writes what it is asked for."""

    def constant(self, value: int) -> str:
        return str(value)

    def size(self, name: str) -> str:
        return f"dim({name})"

    def add(self, a: str, b: str) -> str:
        return f"add({a}, {b})"

    def multiply(self, a: str, b: str) -> str:
        return f"mul({a}, {b})"

    def divide(self, a: str, b: str) -> str:
        return f"div({a}, {b})"

    def minimum(self, a: str, b: str) -> str:
        return f"min({a}, {b})"


@given(expressions, sizes)
def test_an_expression_is_a_number_where_sizes_are(
    expression: Expression, sizes: dict[str, int]
) -> None:
    if isinstance(expression.dim, Dimension):
        assert expression.dim.evaluate(sizes) == expression.compute(sizes)


def test_a_size_without_a_value_is_told() -> None:
    size = (H - 1) // 2 + W
    assert isinstance(size, Dimension)
    with pytest.raises(InputError, match=r"\(H \+ 1\) // 2.*: 'W' has no value.*: H$"):
        size.evaluate({"H": 3})
    with pytest.raises(InputError, match="sizes with one: none"):
        size.evaluate({})


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (7, "7"),
        (0, "0"),
        (H, "dim(H)"),
        ((H - 1) // 2 + 1, "div(add(1, dim(H)), 2)"),
        (3 * H * W, "mul(mul(dim(H), dim(W)), 3)"),
        (least(64, N), "min(64, dim(N))"),
        (H // N, "div(dim(H), dim(N))"),
    ],
)
def test_an_expression_in_another_language(size: Dim, text: str) -> None:
    assert express(size, Text()) == text
