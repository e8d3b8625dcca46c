"""Operators that move elements about, against NumPy and PyTorch; quantization, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ops.oracle import torch

from crosschip.ir import Array, ElementType, Quantization
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.slicing import Slice

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

SHAPE = (2, 3, 4)


def test_reshape(check: Checker) -> None:
    for asked, made in (
        ((4, 6), (4, 6)),
        ((-1,), (24,)),
        ((0, -1), (2, 12)),
        ((1, 0, 8), (1, 3, 8)),
    ):
        check(
            lambda b, x, asked=asked: b.add(Reshape, x, asked),
            lambda x, made=made: x.reshape(made),
            SHAPE,
        )


def test_transpose(check: Checker) -> None:
    for perm in ((0, 1, 2), (2, 0, 1), (-1, -2, -3)):
        check(
            lambda b, x, perm=perm: b.add(Transpose, x, perm),
            lambda x, perm=perm: torch.permute(torch.from_numpy(x), perm),
            SHAPE,
        )


def test_squeeze_and_unsqueeze(check: Checker) -> None:
    for axes in ((0,), (-1,), (0, 2), (-1, -3)):
        check(
            lambda b, x, axes=axes: b.add(Squeeze, x, axes),
            lambda x, axes=axes: torch.squeeze(torch.from_numpy(x), axes),
            (1, 3, 1),
        )
        check(
            lambda b, x, axes=axes: b.add(Unsqueeze, x, axes),
            lambda x, axes=axes: np.expand_dims(x, axes),
            (2, 3),
        )


def test_flatten(check: Checker) -> None:
    for start, end in ((0, -1), (1, -1), (0, 1), (-2, -2), (1, 2)):
        check(
            lambda b, x, s=start, e=end: b.add(Flatten, x, s, e),
            lambda x, s=start, e=end: torch.flatten(torch.from_numpy(x), s, e),
            SHAPE,
        )
    check(lambda b, x: b.add(Flatten, x), lambda x: x.reshape(1), ())


def test_expand(check: Checker) -> None:
    for shape, made in (
        ((2, 3, 4), (2, 3, 4)),
        ((5, 2, -1, 4), (5, 2, 1, 4)),
        ((1, 1), (2, 1, 4)),
        ((), (2, 1, 4)),
    ):
        check(
            lambda b, x, shape=shape: b.add(Expand, x, shape),
            lambda x, made=made: torch.from_numpy(x).expand(made),
            (2, 1, 4),
        )


def test_shape_and_fill(check: Checker) -> None:
    check(lambda b, x: b.add(ShapeOf, x), lambda x: np.array(x.shape), SHAPE)
    check(
        lambda b, x: b.add(ShapeOf, x, ElementType.INT32),
        lambda x: np.array(x.shape, np.int32),
        SHAPE,
    )
    check(lambda b, x: b.add(Fill, (2, 3), x), lambda x: torch.full((2, 3), float(x[0])), (1,))


def test_concat_and_split(check: Checker) -> None:
    for axis in (0, 1, -1):
        check(
            lambda b, x, y, axis=axis: b.add(Concat, [x, y, x], axis=axis),
            lambda x, y, axis=axis: np.concatenate([x, y, x], axis),
            *(SHAPE, SHAPE),
        )
    check(
        lambda b, x: b.add_all(Split, x, -1, (1, 0, 3)),
        lambda x: torch.split(torch.from_numpy(x), [1, 0, 3], -1),
        SHAPE,
    )


def test_gather(check: Checker) -> None:
    for axis in (0, 1, -1):
        for indices in (np.array([1, 0, -1]), np.array([[0, 1], [1, -2]]), np.array(1)):
            check(
                lambda b, x, i, axis=axis: b.add(Gather, x, i, axis),
                lambda x, i, axis=axis: x[(slice(None),) * (axis % 3) + (i,)],
                *(SHAPE, indices),
            )


# The checker only counts how often it is asked.
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(0, 6),
    start=st.integers(-9, 9),
    end=st.integers(-9, 9),
    step=st.integers(-3, 3),
)
def test_slices_are_those_of_python(
    check: Checker, size: int, start: int, end: int, step: int
) -> None:
    if step:
        check(
            lambda b, x: b.add(Slice, x, (1,), (start,), (end,), (step,)),
            lambda x: x[:, start:end:step],
            (2, size),
        )


def test_slices_to_the_very_ends(check: Checker) -> None:
    far = 2**31 - 1
    for start, end, step, slices in (
        (1, far, 1, slice(1, None)),
        (-far, far, 2, slice(None, None, 2)),
        (far, -far, -1, slice(None, None, -1)),
    ):
        check(
            lambda b, x, s=start, e=end, p=step: b.add(Slice, x, (1,), (s,), (e,), (p,)),
            lambda x, slices=slices: x[:, slices],
            (2, 5),
        )
    check(lambda b, x: b.add(Slice, x, starts=(1, 0), ends=(2, 3)), lambda x: x[1:2, 0:3], SHAPE)


@pytest.mark.parametrize("target", sorted(ALL_TYPES, key=str), ids=str)
def test_casts(check: Checker, target: ElementType) -> None:
    # A float of nothing but an exponent has no 0, and rounds up.
    powers = target is ElementType.FLOAT8E8M0
    reals = np.array([2.0**-99, 0.5, 8] if powers else [0.0, 0.4, 1.0, 2.9, 100.7], np.float32)

    def like(x: Array) -> Array:
        if target is ElementType.BOOL:
            return np.array([bool(value) for value in x.tolist()])
        if target.dtype.kind in "iu":
            return np.array([int(value) for value in x.tolist()], target.dtype)
        return x.astype(target.dtype)

    check(lambda b, x: b.add(Cast, x, target), like, reals, tolerance=0)


def quantized(reals: Array, scale: float, zero_point: int, dtype: ElementType) -> Array:
    """By the definition, with Python's rounding, which is to the nearest and ties to even."""
    limits = np.iinfo(dtype.dtype)
    steps = [round(float(np.float32(real) / np.float32(scale))) + zero_point for real in reals]
    return np.array([min(max(step, limits.min), limits.max) for step in steps], dtype.dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("scale", [0.25, 0.1, 7.3])
def test_quantization(check: Checker, dtype: str, scale: float) -> None:
    element_type = ElementType(dtype)
    zero_point = 3
    reals = np.arange(-700, 700, dtype=np.float32) / 2 * np.float32(scale)
    check(
        lambda b, x: b.add(Quantize, x, 0, (scale,), (float(zero_point),), element_type),
        lambda x: quantized(x, scale, zero_point, element_type),
        reals,
    )
    check(
        lambda b, x: b.add(
            Dequantize, b.add(Quantize, x, 0, (scale,), (float(zero_point),), element_type)
        ),
        lambda x: (
            (quantized(x, scale, zero_point, element_type).astype(np.float32) - zero_point)
            * np.float32(scale)
        ),
        reals,
    )


def test_quantization_by_channel(check: Checker) -> None:
    scales, zeros = (0.5, 0.25, 3.0), (0.0, 1.0, -2.0)

    def like(x: Array) -> Array:
        channels = [
            quantized(x[:, i].ravel(), scales[i], int(zeros[i]), ElementType.INT8).reshape(2, 4)
            for i in range(3)
        ]
        return np.stack(channels, axis=1)

    check(lambda b, x: b.add(Quantize, x, -2, scales, zeros), like, (2, 3, 4))


def test_dequantization_by_channel(check: Checker) -> None:
    quantization = Quantization((0.5, 2.0), (1, -3), axis=0)
    stored = np.array([[-128, 127], [0, 5]], np.int8)
    expected = np.array([[-64.5, 63.0], [6.0, 16.0]], np.float32)
    check(
        lambda b, x: b.add(Mul, b.add(Dequantize, b.constant(stored, "q", quantization)), x),
        lambda x: expected * x,
        (2, 2),
    )
