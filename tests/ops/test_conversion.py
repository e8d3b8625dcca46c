"""Element types and quantization, against PyTorch, and by hand with Python's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from tests.ops.oracle import of_torch, torch

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, TensorType
from crosschip.ops.numerics.casting import PowerRounding
from crosschip.ops.standard.conversion import BitCast, Cast
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.slicing import Slice

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


def greatest_of(target: ElementType) -> float:
    return float(ml_dtypes.finfo(target.dtype).max)  # type: ignore[no-untyped-call]  # has no types


def bits(b: Builder, x: Operand, target: ElementType, **options: Any) -> Operand:
    """The bits of a cast, which other libraries can hold."""
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
    """The tables of ONNX's Cast."""
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
"""Types of which ml_dtypes does not cast each to each."""


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


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
def test_quantization_to_few_bits(check: Checker, dtype: str) -> None:
    element_type, width = ElementType(dtype), int(dtype[-1])
    low, high = (
        (0, 2**width - 1) if dtype[0] == "u" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    )

    def steps(x: Array) -> list[int]:
        return [min(max(round(value / 0.25) + 1, low), high) for value in x.tolist()]

    reals = np.arange(-60, 60, dtype=np.float32) / 8
    check(
        lambda b, x: b.add(Quantize, x, 0, (0.25,), (1.0,), element_type),
        lambda x: np.array(steps(x), np.int32).astype(element_type.dtype),
        reals,
    )
    check(
        lambda b, x: b.add(Dequantize, b.add(Quantize, x, 0, (0.25,), (1.0,), element_type)),
        lambda x: np.array([(step - 1) * 0.25 for step in steps(x)], np.float32),
        reals,
    )


@pytest.mark.parametrize("target", FLOAT8, ids=str)
def test_quantization_to_float8(check: Checker, target: ElementType) -> None:
    greatest, dtype = greatest_of(target), FLOAT8[target]
    reals = np.linspace(-(2.0**17), 2.0**17, 999, dtype=np.float32)
    check(
        lambda b, x: b.add(Dequantize, b.add(Quantize, x, 0, (0.5,), (0.0,), target)),
        of_torch(lambda x: (x / 0.5).clamp(-greatest, greatest).to(dtype).to(torch.float32) * 0.5),
        reals,
    )


def test_quantization_by_channel_as_pytorch(check: Checker) -> None:
    scales, zeros = (0.5, 0.25, 3.0), (0, 1, -2)
    check(
        lambda b, x: b.add(Dequantize, b.add(Quantize, x, -2, scales, tuple(map(float, zeros)))),
        of_torch(
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.tensor(scales), torch.tensor(zeros, dtype=torch.int32), 1, -128, 127
            )
        ),
        (2, 3, 4),
    )


def test_what_no_integer_stands_for(check: Checker) -> None:
    check(
        lambda b, x: b.add(Quantize, x, 0, (0.5,), (3.0,)),
        lambda x: np.array([127, -128, 0], np.int8),
        np.array([np.inf, -np.inf, np.nan], np.float32),
    )


Move = Callable[[Builder, Operand], Operand]
BY_AXIS = Quantization((0.5, 0.25, 2.0), (1, 2, 3), axis=1)
WHOLE = Quantization((0.5,), (7,))

MOVES: list[tuple[Move, Callable[[Array], Array], int | None]] = [
    (lambda b, x: b.add(Transpose, x, (1, 2, 0)), lambda x: x.transpose(1, 2, 0), 0),
    (lambda b, x: b.add(Transpose, x, (-1, 0, 1)), lambda x: x.transpose(2, 0, 1), 2),
    (lambda b, x: b.add(Unsqueeze, x, (0, -1)), lambda x: x[None, ..., None], 2),
    (lambda b, x: b.add(Unsqueeze, x, (2,)), lambda x: x[:, :, None], 1),
    (lambda b, x: b.add(Squeeze, x, (0,)), lambda x: x[0], 0),
    (lambda b, x: b.add(Squeeze, x), lambda x: x[0], 0),
    (lambda b, x: b.add(Slice, x, (2,), (1,), (3,)), lambda x: x[:, :, 1:3], 1),
    (lambda b, x: b.add(Slice, x, (-2,), (1,), (3,)), lambda x: x[:, 1:3], None),
    (lambda b, x: b.add(Reshape, x, (3, 4)), lambda x: x.reshape(3, 4), None),
    (lambda b, x: b.add(Flatten, x, 0), lambda x: x.ravel(), None),
]


@pytest.mark.parametrize(("move", "moved", "axis"), MOVES)
def test_quantized_integers_are_moved(
    move: Move, moved: Callable[[Array], Array], axis: int | None
) -> None:
    """With scales along an axis, only where the axis stays whole; else the reals are moved."""
    stored = np.arange(-6, 6, dtype=np.int8).reshape(1, 3, 4)
    for quantization, kept in ((WHOLE, WHOLE), (BY_AXIS, axis)):
        b = Builder()
        x = b.input("x", TensorType(ElementType.INT8, stored.shape, quantization))
        y = move(b, x)
        b.output("y", y)
        (result,) = ReferenceProgram(b.build()).run([stored])
        if kept is None:
            along = np.reshape(BY_AXIS.zero_point, (3, 1)), np.reshape(BY_AXIS.scale, (3, 1))
            reals = (stored.astype(np.float32) - along[0]) * along[1]
            assert y.type.quantization is None
            np.testing.assert_array_equal(result, moved(reals.astype(np.float32)))
        else:
            found = y.type.quantization
            assert found is not None
            assert (found.scale, found.zero_point) == (quantization.scale, quantization.zero_point)
            assert found.axis == (None if quantization is WHOLE else axis)
            np.testing.assert_array_equal(result, moved(stored), strict=True)


def ran(build: Callable[[Builder], Any]) -> tuple[TensorType, Array]:
    b = Builder()
    y = build(b)
    b.output("y", y)
    (result,) = ReferenceProgram(b.build()).run([])
    return y.type, result


def test_quantized_parts_of_several_scales_become_one() -> None:
    ones, twos = np.ones(2, np.int8), np.full(2, 2, np.int8)

    def joined(b: Builder, second: float, **options: Any) -> Operand:
        parts = [
            b.constant(ones, quantization=Quantization((0.5,))),
            b.constant(twos, quantization=Quantization((second,))),
        ]
        return b.add(Concat, parts, axis=0, **options)

    type_, result = ran(lambda b: joined(b, 0.5))
    assert type_.quantization == Quantization((0.5,))
    assert result.tolist() == [1, 1, 2, 2]
    type_, result = ran(lambda b: joined(b, 0.25))
    assert type_ == TensorType(ElementType.FLOAT32, (4,))
    assert result.tolist() == [0.5, 0.5, 0.5, 0.5]
    type_, result = ran(lambda b: joined(b, 1.0, quantization=Quantization((0.25,), (3,))))
    assert type_.quantization == Quantization((0.25,), (3,))
    assert result.tolist() == [5, 5, 11, 11]


def test_padding_of_a_quantized_tensor_is_the_real_zero() -> None:
    stored, quantization = np.array([1, 2], np.uint8), Quantization((0.5,), (7,))

    def padded(b: Builder, *options: object) -> Operand:
        x = b.constant(stored, quantization=quantization)
        return b.add(Pad, x, (1, 1), *options)

    assert ran(lambda b: padded(b))[1].tolist() == [7, 1, 2, 7]
    one = np.float32(1)
    value = ran(lambda b: padded(b, PadMode.CONSTANT, b.constant(one)))[1]
    assert value.tolist() == [9, 1, 2, 9]
    assert ran(lambda b: padded(b, PadMode.EDGE))[1].tolist() == [1, 1, 2, 2]


def test_split_of_a_quantized_tensor() -> None:
    type_, result = ran(
        lambda b: b.add_all(
            Split,
            b.constant(np.array([1, 2, 3], np.int16), quantization=Quantization((0.1,))),
            0,
            (1, 2),
        )[1]
    )
    assert type_ == TensorType(ElementType.INT16, (2,), Quantization((0.1,)))
    assert result.tolist() == [2, 3]
