"""Integers on ONNX Runtime, compared with NumPy: division traps and products saturate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import crosschip
from crosschip.ir import Array, Builder, ElementType, TensorType, symbol
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Div, Mod
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.reduction import ReduceProd

Run = Callable[..., Array]


def compiled(operator: type[Operator], *types: TensorType, **named: Any) -> Run:
    b = Builder("one")
    inputs = [b.input(f"x{index}", type_) for index, type_ in enumerate(types)]
    b.output("y", b.add(operator, *inputs, **named))
    return crosschip.compile(b.build(), ["onnxruntime"], cache=False)


def quotient(a: Array, b: Array) -> Array:
    """Compute the defined quotient with Python's integers."""

    def one(x: int, y: int) -> int:
        return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    exact = [one(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    half = 2 ** (a.dtype.itemsize * 8 - 1)
    return np.array([(q + half) % (2 * half) - half for q in exact], a.dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_divisors_that_are_computed(dtype: type[np.integer]) -> None:
    """Including 0, and -1 for the least integer."""
    type_ = TensorType(ElementType.of(np.dtype(dtype)), (symbol("N"),))
    div, mod = compiled(Div, type_, type_), compiled(Mod, type_, type_)
    limits = np.iinfo(dtype)
    special = np.array([limits.min, limits.min + 1, -7, -2, -1, 0, 1, 2, 7, limits.max], dtype)
    a, b = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(special, special))
    np.testing.assert_array_equal(div(a, b), quotient(a, b))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(mod(a, b), np.mod(a, b))


@settings(max_examples=40)
@given(data=st.data(), before=st.integers(0, 9), after=st.integers(0, 9))
def test_a_mirror_image_of_an_open_size(data: st.DataObject, before: int, after: int) -> None:
    """NumPy computes the same, however wide the padding is."""
    type_ = TensorType(ElementType.FLOAT32, (symbol("N"), symbol("M")))
    run = compiled(Pad, type_, pads=(before, after, after, before), mode=PadMode.REFLECT)
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 3)))
    x = data.draw(arrays.arrays(np.float32, shape, elements=st.floats(-9, 9, width=32)))
    expected = np.pad(x, ((before, after), (after, before)), mode="reflect")
    np.testing.assert_array_equal(run(x), expected)


@pytest.mark.parametrize("axes", [(0,), (1,), (-1, 0), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_products_of_few_integers_wrap_around(
    axes: tuple[int, ...], keepdim: bool, dtype: type[np.integer]
) -> None:
    limits = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(limits.min, limits.max, (2, 4, 3), dtype=dtype) | 1
    type_ = TensorType(ElementType.of(x.dtype), x.shape)
    run = compiled(ReduceProd, type_, axes=axes, keepdim=keepdim)
    with np.errstate(all="ignore"):
        expected = np.prod(x, axis=axes, keepdims=keepdim, dtype=dtype)
    np.testing.assert_array_equal(run(x), expected)
