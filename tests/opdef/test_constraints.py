"""Machine-readable constraints: what is a rule, and whether it holds; Python is the judge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.opdef.documents import CORPUS

from crosschip.ir import ElementType, Operand, Quantization, TensorType, constant, symbol
from crosschip.opdef.constraints import GrammarError, parse_rule, rules_of, tensors_of
from crosschip.opdef.documents import read
from crosschip.opdef.evaluation import holds

N = symbol("N")


def tensor(*shape: Any, dtype: ElementType = ElementType.FLOAT32, **more: Any) -> Operand:
    return Operand("t", TensorType(dtype, shape, **more))


def number(value: Any) -> Operand:
    return constant(np.asarray(value), "c")


def judged(text: str, **operands: Operand | Sequence[Operand]) -> bool | None:
    filled = {n: [o] if isinstance(o, Operand) else list(o) for n, o in operands.items()}
    return holds(parse_rule(text.replace("in[0]", "x").replace("in[1]", "y")), filled)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "name of a tensor"),
        ("Tensor is only positive", 7, "a comparison is expected"),
        ("rank(x) >=", 10, "name of a tensor"),
        ("rank(x) >= 1 2", 13, "nothing more"),
        ("rank(x >= 1", 7, "')' is expected"),
        ("dim(x) > 1", 5, "',' is expected"),
        ("x", 1, "a comparison"),
        ("x + 1", 5, "a comparison"),
        ("x not > 1", 6, "'in' is expected"),
        ("dtype(x) < FLOAT_32", 19, "neither less nor greater"),
        ("dtype(x) == 1", 13, "a datatype is not compared with a number"),
        ("shape(x) + 1 == 2", 13, "only numbers are put together"),
        ("-dtype(x) == 1", 10, "only a number can be negative"),
        ("dim(x, dtype(x)) == 1", 15, "an axis is a number"),
        ("x in {1, FLOAT_32}", 17, "not compared"),
        ("x in {}", 6, "name of a tensor"),
        ("x = 1", 2, "'=' is none of its signs"),
        ("x > 1 $", 6, "'$' is none of its signs"),
        ("x > not", 4, "name of a tensor"),
        ("BACKEND_SPECIFIC == dtype(x)", 28, "not compared"),
        ("(" * 40, 33, "parentheses"),
        ("not " * 40 + "x > 1", 132, "parentheses"),
        ("x > " + "1" * 1000, 1000, "at most 1000 characters"),
        ("__import__('os')", 10, "a comparison"),
    ],
)
def test_what_is_no_rule(text: str, position: int, message: str) -> None:
    with pytest.raises(GrammarError, match=re.escape(message)) as caught:
        parse_rule(text)
    assert caught.value.position == position


def test_names_of_tensors() -> None:
    rule = parse_rule("dim(in[0], axis) == count('odd name') and not given(rank) or x in {y, 2}")
    assert list(tensors_of(rule)) == ["in[0]", "axis", "odd name", "rank", "x", "y"]


def test_of_an_operator_those_about_its_tensors() -> None:
    (op_def,) = read(CORPUS / "right" / "all_elements.xml").collection.definitions.op_defs
    found = [(tensor.name, constraint.text) for tensor, constraint, _ in rules_of(op_def)]
    assert found == [
        ("in[0]", "rank(in[0]) == 4"),
        ("out[0]", "dtype(out[0]) == dtype(in[0])"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rank(x) == 3", True),
        ("rank(x) < 3", False),
        ("dim(x, 0) == 2 and dim(x, -1) == 4", True),
        ("dim(x, 3) == 1", False),
        ("dim(x, 3) != 1", False),
        ("dim(x, 1) == 5", None),
        ("dim(x, 1) == dim(y, 0)", True),
        ("dim(x, 1) < dim(y, 0) + 1", True),
        ("dim(x, 1) * 2 == dim(y, 0) + dim(y, 0)", True),
        ("size(x) == 8 * dim(y, 0)", True),
        ("shape(x) == shape(x)", True),
        ("shape(x) == shape(y)", False),
        ("shape(x) != shape(y)", True),
        ("dtype(x) == FLOAT_32", True),
        ("dtype(x) == QNN_DATATYPE_FLOAT_16", False),
        ("dtype(x) in {FLOAT_16, FLOAT_32}", True),
        ("dtype(x) not in {FLOAT_16, FLOAT_32}", False),
        ("dtype(q) == SFIXED_POINT_8 and dtype(q) != INT_8", True),
        ("rank(u) == 1", None),
        ("rank(u) == 1 or rank(x) == 3", True),
        ("rank(u) == 1 and rank(x) == 2", False),
        ("not rank(u) == 1", None),
        ("x > 0", None),
        ("k >= 1", True),
        ("k > 1", False),
        ("k in {1, 2, 3}", True),
        ("k not in {4, 5}", True),
        ("k not in {3, 4}", False),
        ("k != 2", False),
        ("f == 0.5", True),
        ("k / 0 == 1", False),
        ("not k / 0 == 1", True),
        ("given(x) and not given(z)", True),
        ("z > 0", True),
        ("not z > 0", True),
        ("count(z) == 0", True),
        ("dim(y, f) == 1", False),
    ],
)
def test_whether_a_rule_holds(text: str, expected: bool | None) -> None:
    found = judged(
        text,
        x=tensor(2, N, 4),
        y=tensor(N, 7),
        q=tensor(1, dtype=ElementType.INT8, quantization=Quantization((0.5,))),
        u=Operand("u", TensorType(ElementType.FLOAT32, None)),
        k=number([1, 2, 3]),
        f=number(0.5),
        z=[],
    )
    assert found is expected


def test_what_repeats_must_hold_for_every_one() -> None:
    alike = [tensor(2, 3), tensor(4, 3)]
    assert judged("dim(x, 1) == 3", x=alike) is True
    assert judged("dim(x, 0) == 2", x=alike) is False
    assert judged("dim(x, 1) == dim(x, 1)", x=alike) is True
    assert judged("dim(x, 0) == dim(x, 0)", x=alike) is False
    assert judged("count(x) == 2 and dtype(x) == dtype(x)", x=alike) is True
    other = tensor(2, 3, dtype=ElementType.INT32)
    assert judged("dtype(x) == dtype(x)", x=[*alike, other]) is False
    assert judged("rank(x) == rank(x)", x=alike * 100) is None


def test_large_integers_do_not_overflow() -> None:
    assert judged("k + 1 > k", k=number(np.int64(2**63 - 1))) is True
    assert judged("k * k == 1", k=number(np.int64(2**32))) is False
    assert judged("-k < k", k=number(np.uint8(200))) is True


NUMBERS = st.integers(-3, 3)
NAMES = st.sampled_from(["a", "b", "c"])


def _sums() -> st.SearchStrategy[str]:
    atoms = NAMES | NUMBERS.map(str) | st.sampled_from(["rank(t)", "dim(t, 0)", "dim(t, -1)"])
    return st.recursive(
        atoms,
        lambda inner: (
            st.builds("{} {} {}".format, inner, st.sampled_from("+-*"), inner)
            | inner.map("({})".format)
            | inner.map("-{}".format)
        ),
        max_leaves=4,
    )


SUMS = _sums()
RULES = st.recursive(
    st.builds("{} {} {}".format, SUMS, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), SUMS)
    | st.builds("{} < {} <= {}".format, SUMS, SUMS, SUMS)
    | st.builds("{} {} {{{}, {}}}".format, SUMS, st.sampled_from(["in", "not in"]), SUMS, SUMS),
    lambda inner: (
        st.builds("{} {} {}".format, inner, st.sampled_from(["and", "or"]), inner)
        | inner.map("({})".format)
        | inner.map("not ({})".format)
    ),
    max_leaves=5,
)


@settings(max_examples=80)
@given(RULES, NUMBERS, NUMBERS, NUMBERS, st.lists(st.integers(0, 4), min_size=1, max_size=3))
def test_rules_about_numbers_are_pythons(
    text: str, a: int, b: int, c: int, shape: list[int]
) -> None:
    python = {"a": a, "b": b, "c": c, "t": shape, "rank": len, "dim": lambda t, axis: t[axis]}
    expected = eval(text, {"__builtins__": {}}, python)  # the text is our own
    operands = {name: [number(np.int64(value))] for name, value in (("a", a), ("b", b), ("c", c))}
    assert holds(parse_rule(text), {**operands, "t": [tensor(*shape)]}) is expected


@given(st.text(st.sampled_from("ab (){}[],'<>=!+-*/%0.9ndortigve"), max_size=30))
def test_any_text_is_a_rule_or_is_none(text: str) -> None:
    try:
        rule = parse_rule(text)
    except GrammarError as error:
        assert str(error).startswith("at character ")  # noqa: PT017
        return
    operands = {name: [number(np.array([1, 2]))] for name in tensors_of(rule)}
    assert holds(rule, operands) in (True, False, None)
