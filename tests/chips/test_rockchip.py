"""Rockchip's compiler and simulator: what is right, what is refused, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from benchmarks.chips import interpreter

from crosschip.devices.reference import ReferenceDevice
from crosschip.devices.rockchip import RockchipDevice
from crosschip.hal import CompileError, Options, Precision, Refusal, Rule
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Model,
    Operand,
    Operation,
    Quantization,
    TensorType,
)
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add, Clip, Pow
from crosschip.ops.standard.blocks import DepthToSpace
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Squeeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.rearranging import ReverseSequence
from crosschip.ops.standard.reduction import ReduceMean, ReduceSum
from crosschip.ops.standard.unary import Erf

REAL = ElementType.FLOAT32
HALF = Options(precision=Precision.FLOAT16)
IMAGE = np.random.default_rng(0).normal(size=(1, 3, 16, 16)).astype(np.float32)
FILTERS = np.random.default_rng(1).normal(size=(8, 3, 3, 3)).astype(np.float32)


class Unlimited(RockchipDevice):
    """The device as it would be if the compiler were right."""

    def limit(self, operation: Operation, options: Options) -> Refusal | None:
        return None


@pytest.fixture(scope="module")
def python() -> str:
    return interpreter("rockchip")


@pytest.fixture(scope="module")
def device(python: str) -> Iterator[RockchipDevice]:
    with RockchipDevice({"python": python}) as made:
        yield made


@pytest.fixture(scope="module")
def unlimited(python: str) -> Iterator[RockchipDevice]:
    with Unlimited({"python": python}) as made:
        yield made


def network() -> Model:
    b = Builder()
    x = b.input("x", TensorType(REAL, IMAGE.shape))
    b.output("y", b.add(Relu, b.add(Conv2D, x, FILTERS)))
    return b.build()


def both(
    device: RockchipDevice, model: Model, arrays: Sequence[Array], options: Options = HALF
) -> tuple[Array, Array]:
    """The device's output for a model, and the right one."""
    program = device.compile(model, options)
    (made,) = program.run(arrays)
    program.close()
    (expected,) = ReferenceDevice().compile(model, Options()).run(arrays)
    return made, expected


def one(operator: type[Operator], *types: TensorType, **more: Any) -> Model:
    b = Builder()
    inputs = [b.input(f"x{index}", each) for index, each in enumerate(types)]
    b.output("y", b.add(operator, *inputs, **more))
    return b.build()


def test_float16_is_float16(device: RockchipDevice) -> None:
    made, expected = both(device, network(), [IMAGE])
    largest = np.abs(expected).max()
    assert 1e-6 * largest < np.abs(made - expected).max() < 1e-3 * largest


def test_float32_is_declined_unless_asked_for_in_float16(device: RockchipDevice) -> None:
    for answer in device.query(network(), Options()).answers:
        assert not answer
        assert answer.rule is Rule.OPTION
        assert "quantize the model, or ask for float16" in answer.reason
    assert all(device.query(network(), HALF).answers)
    with pytest.raises(CompileError, match="float32"):
        device.compile(network(), Options())


def test_a_saved_program_is_the_same_program(device: RockchipDevice) -> None:
    program = device.compile(network(), HALF)
    (made,) = program.run([IMAGE])
    saved = program.save()
    program.close()
    assert saved is not None
    again = device.load(saved, network(), HALF)
    np.testing.assert_array_equal(again.run([IMAGE])[0], made)
    again.close()


def test_scales_of_a_quantized_model_are_taken_as_they_are(device: RockchipDevice) -> None:
    random = np.random.default_rng(2)
    b = Builder()

    def rounded(reals: Operand, scale: float, zero_point: float) -> Operand:
        integers = b.add(Quantize, reals, 0, (scale,), (zero_point,), ElementType.INT8)
        return b.add(Dequantize, integers)

    x = rounded(b.input("x", TensorType(REAL, IMAGE.shape)), 0.03, 3)
    stored = random.integers(-127, 128, FILTERS.shape).astype(np.int8)
    filters = b.add(Dequantize, b.constant(stored, quantization=Quantization((0.002,))))
    y = b.add(Relu, b.add(Conv2D, x, filters))
    b.output("y", b.add(Quantize, y, 0, (0.05,), (-128.0,), ElementType.INT8))
    model = b.build()
    assert all(device.query(model, Options()).answers)
    made, expected = both(device, model, [IMAGE], Options())
    assert made.dtype == np.int8
    assert np.abs(made.astype(int) - expected).max() <= 1


def test_what_ends_the_compiler_is_refused_and_the_device_goes_on(device: RockchipDevice) -> None:
    """Plain integers of eight bits abort the process; their sums are asked about first."""
    bytes_ = TensorType(ElementType.UINT8, (2,))
    (answer,) = device.query(one(Add, bytes_, bytes_), HALF).answers
    assert not answer
    assert "SIGABRT" in answer.reason
    assert all(device.query(network(), HALF).answers)


def test_what_the_compiler_never_ends_with_is_refused_at_once(device: RockchipDevice) -> None:
    sides = [TensorType(ElementType.INT8, s, Quantization((0.03,))) for s in ((3, 4), (4, 5))]
    made = Quantization((0.1,))
    b = Builder()
    x, y = (b.input(name, side) for name, side in zip("xy", sides, strict=True))
    b.output("computed", b.add(MatMul, x, y, quantization=made))
    b.output("turned", b.add(MatMul, y, x, True, True, quantization=made))
    stored = b.constant(np.ones((4, 5), np.int8), quantization=made)
    b.output("stored", b.add(MatMul, x, stored, quantization=made))
    for answer in device.query(b.build(), Options()).answers:
        assert not answer
        assert "both matrices are quantized, and it never ends" in answer.reason


def test_quantized_sums_along_several_axes_may_never_end(device: RockchipDevice) -> None:
    b = Builder()
    image = b.input("x", TensorType(ElementType.INT8, (2, 3, 4, 5), Quantization((0.03,))))
    for operator in (ReduceMean, ReduceSum):
        for axes in ((0, -1), (1, 2), (2, -1), (1,), ()):
            made = b.add(operator, image, axes, quantization=Quantization((0.05,)))
            b.output(f"{operator.type} {axes}", made)
    answers = device.query(b.build(), Options()).answers
    assert [bool(answer) for answer in answers] == [False, False, True, True, True] * 2
    assert "quantized, along several axes, and it may never end" in answers[0].reason


def test_the_reason_of_a_refusal_is_the_compilers_last_word(device: RockchipDevice) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT32, (5,)))
    b.output("y", b.add(Where, b.input("c", TensorType(ElementType.BOOL, (5,))), x, np.int32(1)))
    (answer,) = device.query(b.build(), HALF).answers
    assert not answer
    assert "Traceback" not in answer.reason


def test_integers_alone_where_the_chip_has_no_float16(python: str) -> None:
    with RockchipDevice({"python": python, "platform": "rv1106"}) as device:
        assert device.capabilities().precisions == frozenset()
        assert not any(device.query(network(), HALF).answers)


def wrong(device: RockchipDevice, model: Model, *arrays: Array) -> None:
    """The device makes something else than it should."""
    made, expected = both(device, model, arrays)
    same = made.shape == expected.shape and np.allclose(
        made, expected, rtol=1e-2, atol=1e-2, equal_nan=True
    )
    assert not same, "the vendor has mended this: take the limit away"


def test_powers_are_in_the_wrong_order(unlimited: RockchipDevice) -> None:
    random = np.random.default_rng(3)
    base = random.uniform(0.5, 2, (2, 1, 4)).astype(np.float32)
    exponent = random.uniform(0.5, 2, (3, 1)).astype(np.float32)
    types = TensorType(REAL, base.shape), TensorType(REAL, exponent.shape)
    wrong(unlimited, one(Pow, *types), base, exponent)


def test_a_sequence_of_no_elements_is_what_was_there_before(unlimited: RockchipDevice) -> None:
    rows = np.random.default_rng(4).uniform(1, 2, (4, 3)).astype(np.float32)
    types = TensorType(REAL, rows.shape), TensorType(ElementType.INT64, (3,))
    model = one(ReverseSequence, *types, time_axis=0, batch_axis=1)
    wrong(unlimited, model, rows, np.array([4, 0, 2]))


def test_bounds_of_integers_are_rounded(unlimited: RockchipDevice) -> None:
    least = -(2**62)
    b = Builder()
    x = b.input("x", TensorType(ElementType.INT64, (2,)))
    b.output("y", b.add(Clip, x, least, -least))
    program = unlimited.compile(b.build(), HALF)
    (made,) = program.run([np.array([least - 1, 5])])
    program.close()
    assert made.tolist() == [least - 1, 5], "the vendor has mended this: take the limit away"


def test_the_error_function_of_a_nan_is_one(device: RockchipDevice) -> None:
    model = one(Erf, TensorType(REAL, (2,)))
    program = device.compile(model, HALF)
    (made,) = program.run([np.array([np.nan, 0], np.float32)])
    program.close()
    assert made.tolist() == [1, 0], "the vendor has mended this: take the exclusion away"


def test_blocks_share_their_nans(device: RockchipDevice) -> None:
    image = np.ones((1, 4, 2, 2), np.float32)
    image[0, 0, 0, 0] = np.nan
    model = one(DepthToSpace, TensorType(REAL, image.shape), block_size=2)
    made, expected = both(device, model, [image])
    assert np.isnan(expected).sum() == 1
    assert np.isnan(made).sum() > 1, "the vendor has mended this: take the exclusion away"


def test_an_output_without_axes_gets_some(unlimited: RockchipDevice) -> None:
    model = one(Squeeze, TensorType(ElementType.INT64, (1, 1)))
    program = unlimited.compile(model, HALF)
    (made,) = program.run([np.array([[7]])])
    program.close()
    assert made.shape != (), "the vendor has mended this: take the limit away"
