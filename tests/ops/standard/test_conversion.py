"""Conversions of element types, compared with PyTorch and Python numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from tests.ops.oracle import of_torch, torch

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Array, Builder, ElementType, Operand, TensorType
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.numerics.casting import PowerRounding
from crosschip.ops.standard.conversion import Assign, BitCast, Cast

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

FLOAT8 = {
    ElementType.FLOAT8E4M3FN: torch.float8_e4m3fn,
    ElementType.FLOAT8E4M3FNUZ: torch.float8_e4m3fnuz,
    ElementType.FLOAT8E5M2: torch.float8_e5m2,
    ElementType.FLOAT8E5M2FNUZ: torch.float8_e5m2fnuz,
}
# float16 has every float8, every number halfway between two of them, and what is beyond them.
EVERY_HALF = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
NUMBERS = EVERY_HALF[~np.isnan(EVERY_HALF)]


def test_assign(check: Checker) -> None:
    check(lambda b, x: b.add(Assign, x), np.copy, (2, 3), tolerance=0)


def greatest_of(target: ElementType) -> float:
    return float(ml_dtypes.finfo(target.dtype).max)  # type: ignore[no-untyped-call]  # has no types


def bits(b: Builder, x: Operand, target: ElementType, **options: Any) -> Operand:
    """Return the bits of a cast, in a type that other libraries support."""
    return b.add(BitCast, b.add(Cast, x, target, **options), ElementType.UINT8)


@pytest.mark.parametrize("target", FLOAT8, ids=str)
def test_casts_to_float8(check: Checker, target: ElementType) -> None:
    greatest = greatest_of(target)
    dtype = FLOAT8[target]
    check(
        lambda b, x: bits(b, x, target, saturate=False),
        of_torch(lambda x: x.to(dtype).view(torch.uint8)),
        NUMBERS[np.abs(NUMBERS) <= greatest],
    )
    check(
        lambda b, x: bits(b, x, target),
        of_torch(lambda x: x.clamp(-greatest, greatest).to(dtype).view(torch.uint8)),
        NUMBERS,
    )
    check(
        lambda b, x: b.add(Cast, b.add(BitCast, x, target), ElementType.FLOAT32),
        of_torch(lambda x: x.view(dtype).to(torch.float32)),
        np.arange(256, dtype=np.uint8),
    )


@pytest.mark.parametrize("target", FLOAT8, ids=str)
def test_beyond_float8(check: Checker, target: ElementType) -> None:
    """The tables in ONNX's specification of Cast."""
    greatest = greatest_of(target)
    beyond = np.inf if target is ElementType.FLOAT8E5M2 else np.nan
    check(
        lambda b, x: b.add(Cast, b.add(Cast, x, target, False), ElementType.FLOAT32),
        lambda x: np.array([greatest, beyond, beyond, -beyond, -beyond], np.float32),
        np.array([1.02 * greatest, 1.3 * greatest, np.inf, -1.3 * greatest, -np.inf], np.float32),
    )


@pytest.mark.parametrize("target", FLOAT8, ids=str)
@pytest.mark.parametrize("saturate", [True, False])
def test_nan_stays_nan(check: Checker, target: ElementType, saturate: bool) -> None:
    check(
        lambda b, x: b.add(Cast, b.add(Cast, x, target, saturate), ElementType.FLOAT32),
        lambda x: x,
        np.array([np.nan], np.float32),
    )


POWERS = {
    PowerRounding.UP: lambda n: math.ceil(math.log2(n)),
    PowerRounding.DOWN: lambda n: math.floor(math.log2(n)),
    PowerRounding.NEAREST: lambda n: math.floor(math.log2(n / 0.75)),
}


@pytest.mark.parametrize("rounding", PowerRounding, ids=lambda rounding: rounding.name)
def test_casts_to_powers_of_two(check: Checker, rounding: PowerRounding) -> None:
    numbers = np.array([0.124, 0.25, 0.3, 0.5, 1.0, 1.1, 1.49, 1.5, 1.51, 3.9, 3e38], np.float32)
    check(
        lambda b, x: bits(b, x, ElementType.FLOAT8E8M0, round_mode=rounding),
        lambda x: np.array([min(127 + POWERS[rounding](n), 254) for n in x.tolist()], np.uint8),
        numbers,
    )
    special = np.array([0, np.inf, np.nan, -1, 1e-45], np.float32)
    for saturate, expected in ((True, [0, 254, 255, 255, 0]), (False, [255] * 5)):
        check(
            lambda b, x, s=saturate: bits(
                b, x, ElementType.FLOAT8E8M0, saturate=s, round_mode=rounding
            ),
            lambda x, expected=expected: np.array(expected, np.uint8),
            special,
        )


def test_rounding_to_bfloat16(check: Checker) -> None:
    wide = np.random.default_rng(0).integers(0, 2**32, 4000, np.uint32).view(np.float32)
    check(
        lambda b, x: b.add(BitCast, b.add(Cast, x, ElementType.BFLOAT16), ElementType.INT16),
        of_torch(lambda x: x.to(torch.bfloat16).view(torch.int16)),
        wide[~np.isnan(wide)],
    )


@pytest.mark.parametrize(
    ("target", "size"), [("int4", 16), ("uint4", 16), ("int2", 4), ("uint2", 4), ("int8", 256)]
)
def test_integers_keep_their_low_bits(check: Checker, target: str, size: int) -> None:
    def low(value: int) -> int:
        rest = value % size
        return rest - size if target.startswith("i") and rest >= size // 2 else rest

    element_type = ElementType(target)
    check(
        lambda b, x: b.add(Cast, b.add(Cast, x, element_type), ElementType.INT32),
        lambda x: np.array([low(value) for value in x.tolist()], np.int32),
        np.arange(-600, 600, dtype=np.int32),
    )


NARROW = (
    *(ElementType.INT4, ElementType.UINT4, ElementType.INT2, ElementType.UINT2),
    *(ElementType.FLOAT8E8M0, ElementType.FLOAT8E5M2, ElementType.FLOAT4E2M1),
    ElementType.BFLOAT16,
)
"""Types between which ml_dtypes lacks some casts."""


@pytest.mark.parametrize("target", NARROW, ids=str)
@pytest.mark.parametrize("source", NARROW, ids=str)
def test_narrow_types_become_each_other(source: ElementType, target: ElementType) -> None:
    b = Builder()
    b.output("y", b.add(Cast, b.input("x", TensorType(source, (1,))), target))
    (found,) = ReferenceProgram(b.build()).run([np.ones(1, np.float32).astype(source.dtype)])
    assert found.dtype == target.dtype
    assert found.astype(np.float32) == 1


def test_truth(check: Checker) -> None:
    check(
        lambda b, x: b.add(Cast, x, ElementType.BOOL),
        lambda x: np.array([False, False, True, True, True, True]),
        np.array([0.0, -0.0, 1e-45, np.nan, -np.inf, 0.5], np.float32),
    )
    for target in (ElementType.INT4, ElementType.FLOAT8E5M2, ElementType.BFLOAT16):
        check(
            lambda b, x, t=target: b.add(Cast, b.add(Cast, x, t), ElementType.INT32),
            lambda x: np.array([1, 0], np.int32),
            np.array([True, False]),
        )


@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "int32"), ("int64", "float64"), ("int16", "uint16"), ("float16", "int16")],
)
def test_bits(check: Checker, source: str, target: str) -> None:
    taken = np.random.default_rng(0).integers(0, 256, 64, np.uint8).view(source)
    check(
        lambda b, x: b.add(BitCast, b.add(BitCast, x, ElementType(target)), ElementType(source)),
        lambda x: x,
        taken[taken == taken],
        tolerance=0,
    )
    check(
        lambda b, x: b.add(BitCast, x, ElementType(target)),
        lambda x: np.frombuffer(x.tobytes(), target),
        taken[taken == taken],
        tolerance=0,
    )


def test_bits_of_narrow_types(check: Checker) -> None:
    check(
        lambda b, x: b.add(
            Cast,
            b.add(BitCast, b.add(Cast, x, ElementType.INT4), ElementType.UINT4),
            ElementType.INT32,
        ),
        lambda x: x % 16,
        np.arange(-8, 8, dtype=np.int32),
    )
    check(
        lambda b, x: b.add(BitCast, x, ElementType.BOOL),
        lambda x: x > 0,
        np.arange(256, dtype=np.uint8),
    )


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
