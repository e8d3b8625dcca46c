"""Default values, by the document's rules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.defaults import parse_default, range_of, reason_against, scalars, shape_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("1.1", 1.1), ("-1", -1), ("+2", 2), (" 3 \n", 3), ("1e3", 1000.0), (".5", 0.5),
        ("2.", 2.0), ("0", 0), ("-0", 0), ("007", 7), ("inf", math.inf), ("-inf", -math.inf),
        ("[[1, 2], [3, 4]]", ((1, 2), (3, 4))),
        ("{{1, 2}, {3, 4}}", ((1, 2), (3, 4))),
        ("[{1},[2.5]]", ((1,), (2.5,))),
        ("[]", ()), ("[[], []]", ((), ())), ("[ 1 ]", (1,)),
        ("", ""), ("N-1", "N-1"), ("1 2", "1 2"), ("0x10", "0x10"), ("1_000", "1_000"),
        ("true", "true"), ("[1, 2", "[1, 2"), ("[1, 2)", "[1, 2)"), ("[1} ", "[1}"),
        ("[1,]", "[1,]"), ("[,1]", "[,1]"), ("[1 2]", "[1 2]"), ("[1], 2", "[1], 2"),
        ("[1][2]", "[1][2]"), ("[a, b]", "[a, b]"), ("(1, 2)", "(1, 2)"), ("١", "١"),
        ("[" * 40 + "]" * 40, "[" * 40 + "]" * 40),
    ],
)  # fmt: skip
def test_text_is_a_number_a_list_or_a_string(text: str, value: object) -> None:
    found = parse_default(text)
    assert found == value
    assert type(found) is type(value)


@given(
    st.recursive(
        st.integers() | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=4).map(tuple),
        max_leaves=20,
    ),
    st.sampled_from(["[]", "{}"]),
)
def test_what_is_written_out_reads_the_same(value: Any, brackets: str) -> None:
    def text(part: Any) -> str:
        if not isinstance(part, tuple):
            return repr(part)
        return f"{brackets[0]}{', '.join(map(text, part))}{brackets[1]}"

    assert parse_default(text(value)) == value


@given(st.text(max_size=20))
def test_any_text_is_some_value(text: str) -> None:
    value = parse_default(text)
    assert isinstance(value, int | float | tuple) or value == text.strip()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple))
def test_the_shape_of_a_list_is_numpys(shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape)
    value = parse_default(str(array.tolist()))
    assert scalars(value) == array.ravel().tolist()
    # NumPy cannot tell either how many axes there are below an axis of size 0.
    assert shape_of(value) == np.array(array.tolist()).shape


def test_rows_of_different_length_have_no_shape() -> None:
    with pytest.raises(ValueError, match="differ in length"):
        shape_of(parse_default("[[1, 2], [3]]"))
    with pytest.raises(ValueError, match="differ in length"):
        shape_of(parse_default("[1, [2]]"))


@pytest.mark.parametrize("datatype", [d for d in Datatype if d.integer], ids=lambda d: d.name)
def test_integers_have_the_range_of_their_type(datatype: Datatype) -> None:
    limits, element_type = range_of(datatype), datatype.element_type
    assert element_type is not None
    info = np.iinfo(element_type.dtype)
    assert limits is not None
    assert (limits.low, limits.high) == (info.min, info.max)
    assert not reason_against(limits.low, datatype)
    assert not reason_against(limits.high, datatype)
    assert "holds" in reason_against(limits.low - 1, datatype)
    assert "holds" in reason_against(limits.high + 1, datatype)
    assert reason_against(0.5, datatype)


def test_what_fits_other_types() -> None:
    assert not reason_against(1, Datatype.BOOL_8)
    assert reason_against(2, Datatype.BOOL_8)
    assert reason_against("true", Datatype.BOOL_8)
    assert not reason_against(-1.5, Datatype.FLOAT_16)
    assert not reason_against(0.1, Datatype.UFIXED_POINT_8)
    assert not reason_against("N-1", Datatype.UINT_32)
    assert not reason_against("-(N + 1)", Datatype.INT_32)
    assert reason_against("1.2.3", Datatype.FLOAT_32)
    assert reason_against("", Datatype.FLOAT_32)
