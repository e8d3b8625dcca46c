"""Quantization, compared with PyTorch and Python numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest
from tests.ops.oracle import of_torch, torch

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    TensorType,
)
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.quantization import (
    Dequantize,
    DynamicQuantize,
    Quantize,
    Reinterpret,
)
from crosschip.ops.standard.slicing import Slice

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


def quantized(reals: Array, scale: float, zero_point: int, dtype: ElementType) -> Array:
    """Quantize by the definition, with Python's rounding (ties to even)."""
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


FLOAT8 = {
    ElementType.FLOAT8E4M3FN: torch.float8_e4m3fn,
    ElementType.FLOAT8E4M3FNUZ: torch.float8_e4m3fnuz,
    ElementType.FLOAT8E5M2: torch.float8_e5m2,
    ElementType.FLOAT8E5M2FNUZ: torch.float8_e5m2fnuz,
}


def greatest_of(target: ElementType) -> float:
    return float(ml_dtypes.finfo(target.dtype).max)  # type: ignore[no-untyped-call]  # has no types


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
        lambda x: np.array([127, -128, -128], np.int8),
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
    """Per-axis quantized elements are moved only if the axis stays whole; else reals are moved."""
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


def test_a_zero_point_that_no_element_can_have() -> None:
    """Otherwise the error would only occur when the operation is decomposed."""
    b, below = Builder(), Quantization((0.5,), (-7,))
    fine = b.input("fine", TensorType(ElementType.UINT8, (4,), Quantization((0.5,), (7,))))
    with pytest.raises(ModelError, match="MUL: of its output, the zero point -7 is beyond uint8"):
        b.add(Mul, fine, fine, quantization=below)
    wrong = b.input("wrong", TensorType(ElementType.UINT8, (4,), below))
    with pytest.raises(ModelError, match=r"MUL\.input0: the zero point -7 is beyond uint8"):
        b.add(Mul, wrong, wrong)
    signed = b.input("signed", TensorType(ElementType.INT8, (4,), below))
    assert b.add(Mul, signed, signed, quantization=below).type.quantization == below


def test_dynamic_quantization_of_nothing_is_refused() -> None:
    b = Builder()
    with pytest.raises(ModelError, match=r"DYNAMIC_QUANTIZE\.input: has no elements"):
        b.add_all(DynamicQuantize, b.input("x", TensorType(ElementType.FLOAT32, (2, 0))))


def test_integers_stand_for_what_they_are_said_to() -> None:
    stored = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    old, scales = Quantization((0.5,), (3,)), (0.25, 2.0, 1.0)
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT8, (3, 4), old))
    b.output("real", b.add(Dequantize, b.add(Reinterpret, x, -2, scales, (1.0, 0.0, -2.0))))
    bare = b.add(Reinterpret, x, bare=True)
    assert bare.type == TensorType(ElementType.INT8, (3, 4))
    b.output("bare", bare)
    real, integers = ReferenceProgram(b.build()).run([stored])
    wide = stored.astype(np.float32) - np.array([[1], [0], [-2]], np.float32)
    np.testing.assert_array_equal(real, wide * np.array(scales, np.float32)[:, None])
    np.testing.assert_array_equal(integers, stored)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((0, (1.0, 2.0)), "scale: its size, and that of the axis"),
        ((0, (0.0,)), "scale: every scale must be a positive"),
        ((0, (1.0,), (200.0,)), r"zero_point: \[200\] are beyond int8"),
        ((5, (1.0, 2.0)), r"axis: 5 is not in \[-2, 2\)"),
    ],
)
def test_integers_cannot_stand_for_that(arguments: tuple[Any, ...], told: str) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT8, (3, 4)))
    with pytest.raises(ModelError, match=rf"REINTERPRET\.{told}"):
        b.add(Reinterpret, x, *arguments)
