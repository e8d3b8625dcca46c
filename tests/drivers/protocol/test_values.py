"""Values that are no tensors of numbers, written and read again."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from crosschip.drivers.protocol import values
from crosschip.ir import DeviceError

SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
TYPES = ("bool", "int8", "uint64", "float16", "float32", ml_dtypes.bfloat16, ml_dtypes.int4)
NUMBERS = st.tuples(st.sampled_from(TYPES), SHAPES, st.randoms()).map(
    lambda drawn: np.array(
        [drawn[2].randrange(2) for _ in range(int(np.prod(drawn[1])))], drawn[0]
    ).reshape(drawn[1])
)
TEXTS = arrays.arrays(object, SHAPES, elements=st.text(st.characters(codec="utf-8")))
ITEMS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")) | NUMBERS | TEXTS
)  # fmt: skip
KEYS = st.text(st.characters(codec="utf-8")) | st.integers(-(2**63), 2**63)
VALUES = st.recursive(
    ITEMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)


def alike(one: Any, other: Any) -> bool:
    """Tell whether two values are of the same types and have the same elements."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool(np.all(one == other))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    return bool(one == other)


@given(VALUES)
def test_what_is_written_is_read(value: Any) -> None:
    assert alike(values.from_bytes(values.to_bytes(value)), value)


def test_arrays_that_come_may_be_written_to() -> None:
    read = values.from_bytes(values.to_bytes(np.arange(3)))
    read[0] = 7
    assert read.tolist() == [7, 1, 2]


@given(st.binary(max_size=60))
def test_bytes_that_are_no_value_are_refused(written: bytes) -> None:
    try:
        values.from_bytes(written)
    except DeviceError as error:
        assert "a value is not laid out as one" in str(error)  # noqa: PT017  # most are


def extension(code: int, content: object) -> bytes:
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(code, msgspec.msgpack.encode(content)))


@pytest.mark.parametrize(
    "written",
    [
        b"\x91" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        extension(3, []),
        extension(1, [["float32", [2]], b"\0" * 4]),
        extension(1, [["float32", [-1]], b"\0" * 4]),
        extension(1, [["float32", [0, 2**63]], b""]),
        extension(1, [["string", [1]], b"\0" * 8]),
        extension(1, [["nothing", [1]], b"\0" * 8]),
        extension(2, [[2], ["x"]]),
        extension(2, [[0, 2**64 - 1], []]),
        extension(2, [[1], [5]]),
    ],
)
def test_values_that_lie_are_refused(written: bytes) -> None:
    with pytest.raises(DeviceError, match="a value is not laid out as one"):
        values.from_bytes(written)


@pytest.mark.parametrize("value", [object(), {1, 2} - {1, 2} or {"x": object()}, 2**64])
def test_what_cannot_go_is_refused(value: object) -> None:
    with pytest.raises(DeviceError, match="a value cannot be sent to another process"):
        values.to_bytes(value)
