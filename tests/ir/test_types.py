"""Element types, quantization and tensor types."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32

from crosschip.ir import ElementType, Quantization, TensorType, symbol, unknown
from crosschip.ir.types import (
    ALL_TYPES,
    BOOLEANS,
    FLOATS,
    INDICES,
    INTEGERS,
    NARROW_TYPES,
    NUMBERS,
)

N = symbol("N")

# NNAdapterOperandPrecisionCode, from Paddle Lite's nnadapter.h: the plain (not quantized) types.
NNADAPTER_CODES = {
    "BOOL": 0,
    "INT8": 1,
    "UINT8": 2,
    "INT16": 3,
    "UINT16": 4,
    "INT32": 5,
    "UINT32": 6,
    "INT64": 7,
    "UINT64": 8,
    "FLOAT16": 9,
    "FLOAT32": 10,
    "FLOAT64": 11,
}


def test_codes_are_those_of_nnadapter() -> None:
    for name, code in NNADAPTER_CODES.items():
        assert ElementType[name].code == code
        assert ElementType.from_code(code) is ElementType[name]


def test_every_type_has_a_code_of_its_own() -> None:
    assert {ElementType.from_code(t.code) for t in ALL_TYPES} == ALL_TYPES


@pytest.mark.parametrize("code", [-1, len(ElementType), 2**31, -(2**31)])
def test_a_code_that_means_nothing_is_refused(code: int) -> None:
    with pytest.raises(ValueError, match=f"{code} is not the code of an element type"):
        ElementType.from_code(code)


def test_strings_and_objects_are_in_no_family_and_no_parameter_asks_for_them() -> None:
    assert set(ElementType) - ALL_TYPES == {ElementType.STRING, ElementType.OBJECT}
    for element_type in (ElementType.STRING, ElementType.OBJECT):
        assert element_type.dtype == np.dtype(object)
        with pytest.raises(ValueError, match="is not the code of an element type"):
            ElementType.from_code(element_type.code)


@pytest.mark.parametrize("element_type", sorted(ALL_TYPES, key=str))
def test_numpy_types_both_ways(element_type: ElementType) -> None:
    name = str(element_type)
    scalar = getattr(np, name) if hasattr(np, name) else getattr(ml_dtypes, name)
    assert element_type.dtype == np.dtype(scalar)
    assert ElementType.of(np.dtype(scalar)) is element_type
    assert ElementType.of(np.zeros(1, scalar).dtype) is element_type


def test_a_type_is_found_under_every_name_that_numpy_has_for_it() -> None:
    assert ElementType.of(np.dtype("longlong")) is ElementType.INT64
    assert ElementType.of(np.dtype("long")) is ElementType.of(np.dtype(np.long))
    assert ElementType.of(np.dtype(float)) is ElementType.FLOAT64
    assert ElementType.of(np.dtype(bool)) is ElementType.BOOL


@pytest.mark.parametrize("dtype", [">f4", "complex64", "U3", "S2", "O", "M8[s]", "f4,f4"])
def test_a_numpy_type_that_no_operand_can_hold_is_refused(dtype: str) -> None:
    with pytest.raises(KeyError):
        ElementType.of(np.dtype(dtype))


def test_families_of_types() -> None:
    assert FLOATS | INTEGERS == NUMBERS
    assert NUMBERS | BOOLEANS | NARROW_TYPES == ALL_TYPES
    assert not (NUMBERS | BOOLEANS) & NARROW_TYPES
    assert INDICES < INTEGERS
    assert not FLOATS & INTEGERS


def test_one_zero_point_stands_for_all_scales() -> None:
    assert Quantization((0.5, 0.25), axis=0).zero_point == (0, 0)
    assert Quantization((0.5, 0.25), (7,), 1).zero_point == (7, 7)


@pytest.mark.parametrize(
    ("scale", "zero_point", "axis", "message"),
    [
        ((0.5, 0.5), (0,), None, "2 scales need an axis"),
        ((), (0,), None, "0 scales"),
        ((0.5,) * 3, (0, 0), 0, "3 scales, but 2 zero points"),
        ((0.5,), (0, 0), 0, "1 scales, but 2 zero points"),
        ((0.0,), (0,), None, "positive"),
        ((-1.0,), (0,), None, "positive"),
        ((math.inf,), (0,), None, "finite"),
        ((0.5, math.nan), (0, 0), 0, "finite"),
    ],
)
def test_a_quantization_that_means_nothing_is_refused(
    scale: tuple[float, ...], zero_point: tuple[int, ...], axis: int | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Quantization(scale, zero_point, axis)


def test_symmetric_quantization() -> None:
    assert Quantization((0.5,)).symmetric
    assert Quantization((0.5, 0.5), (0, 0), 0).symmetric
    assert not Quantization((0.5, 0.5), (0, 1), 0).symmetric


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (float32(), "float32[]"),
        (float32(1, N, 2 * N + 1), "float32[1, N, 2 * N + 1]"),
        (float32(unknown(), 3), "float32[?, 3]"),
        (TensorType(ElementType.BFLOAT16, None), "bfloat16[*]"),
        (
            TensorType(ElementType.UINT8, (4,), Quantization((0.5,), (128,))),
            "uint8[4] quantized(scale 0.5, zero 128)",
        ),
        (
            TensorType(ElementType.INT8, (4, 2), Quantization((0.5, 1.0, 2.0, 4.0), axis=0)),
            "int8[4, 2] quantized(scale [0.5, 1, 2, … 4], axis 0)",
        ),
    ],
)
def test_types_are_readable(type_: TensorType, text: str) -> None:
    assert str(type_) == text


def test_a_shape_is_static_only_if_every_size_is_known() -> None:
    assert float32(2, 3).static_shape == (2, 3)
    assert float32().static_shape == ()
    assert float32(2, N).static_shape is None
    assert float32(unknown()).static_shape is None
    assert TensorType(ElementType.INT8, None).static_shape is None


@given(st.integers(0, 50), st.integers(0, 50))
def test_substitution_reaches_every_size(n: int, m: int) -> None:
    quantization = Quantization((0.5,))
    type_ = TensorType(ElementType.INT8, (N, symbol("M") + N, 3), quantization)
    fixed = type_.substitute({"N": n, "M": m})
    assert fixed == TensorType(ElementType.INT8, (n, m + n, 3), quantization)
    assert type_.substitute({}) == type_
    assert TensorType(ElementType.INT8, None).substitute({"N": n}).shape is None


def test_types_that_are_equal_are_one_key() -> None:
    assert len({float32(N, 3), float32(symbol("N"), 3), float32(3, N)}) == 2


@pytest.mark.parametrize(
    "first",
    [
        "ElementType.BFLOAT16.dtype == ml_dtypes.bfloat16",
        "ElementType.of(np.dtype(ml_dtypes.bfloat16)) is ElementType.BFLOAT16",
        "ElementType.of(np.dtype(ml_dtypes.int2)) is ElementType.INT2",
        "ElementType.of(np.dtype('float32')) is ElementType.FLOAT32",
    ],
)
def test_types_that_numpy_lacks_are_known_whatever_is_asked_first(first: str) -> None:
    program = (
        "import sys, numpy as np\n"
        "from crosschip.ir import ElementType\n"
        "assert 'ml_dtypes' not in sys.modules\n"
        "import ml_dtypes\n"
        f"assert {first}\n"
        "types = [t for t in ElementType if t.value not in ('string', 'object')]\n"
        "assert all(ElementType.of(t.dtype) is t for t in types)\n"
        "for unknown in ('object', 'complex64'):\n"
        "    try:\n"
        "        ElementType.of(np.dtype(unknown))\n"
        "    except KeyError:\n"
        "        continue\n"
        "    raise AssertionError(unknown)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
