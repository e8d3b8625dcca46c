"""Passes keep the results of quantized models, to the last integer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.modelling import float32, model_of, outputs_of

from crosschip.ir import Array, Builder, ElementType, Model, Operand, Quantization, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.conversion import Assign, Cast
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization
from crosschip.ops.standard.quantization import Reinterpret
from crosschip.ops.standard.slicing import Slice
from crosschip.passes import simplify

FINE, COARSE = Quantization((0.1,)), Quantization((0.7,), (3,))
BY_CHANNEL = Quantization((0.5, 0.25), axis=1)
END = 2**31 - 1

Make = Callable[[Builder, Operand], Operand]


def int8(*shape: int, quantization: Quantization = FINE) -> TensorType:
    return TensorType(ElementType.INT8, shape, quantization)


def weights(b: Builder, *shape: int, quantization: Quantization = FINE) -> Operand:
    array = (np.arange(np.prod(shape)) * 37 % 100 - 50).astype(np.int8).reshape(shape)
    return b.constant(array, quantization=quantization)


def numbers(*values: float) -> Array:
    return np.array(values, np.float32)


def statistics() -> tuple[Array, ...]:
    return numbers(1.5, 0.3), numbers(0.3, -0.7), numbers(0.1, 0.2), numbers(1.0, 2.0)


REQUANTIZING: dict[str, Make] = {
    "assign": lambda b, x: b.add(Assign, x, quantization=COARSE),
    "concat of one": lambda b, x: b.add(Concat, [x], 1, quantization=COARSE),
    "reshape": lambda b, x: b.add(Reshape, x, (0, -1, 3), quantization=COARSE),
    "flatten": lambda b, x: b.add(Flatten, x, 2, 2, quantization=COARSE),
    "squeeze": lambda b, x: b.add(Squeeze, x, (), quantization=COARSE),
    "unsqueeze": lambda b, x: b.add(Unsqueeze, x, (), quantization=COARSE),
    "expand": lambda b, x: b.add(Expand, x, (2, 2, 3), quantization=COARSE),
    "slice": lambda b, x: b.add(Slice, x, (0,), (0,), (END,), quantization=COARSE),
    "transpose": lambda b, x: b.add(Transpose, x, (0, 1, 2), quantization=COARSE),
    "the first of two transpositions": lambda b, x: b.add(
        Transpose, b.add(Transpose, x, (2, 0, 1), quantization=COARSE), (1, 2, 0)
    ),
    "the second of two transpositions": lambda b, x: b.add(
        Transpose, b.add(Transpose, x, (2, 0, 1)), (1, 2, 0), quantization=COARSE
    ),
    "the second of two that do not undo each other": lambda b, x: b.add(
        Transpose, b.add(Transpose, x, (2, 0, 1)), (0, 2, 1), quantization=COARSE
    ),
    "there and back": lambda b, x: b.add(
        Assign, b.add(Assign, x, quantization=COARSE), quantization=FINE
    ),
    "cast of what integers stand for": lambda b, x: b.add(Cast, x, ElementType.INT8),
}


@pytest.mark.parametrize("kind", REQUANTIZING)
@pytest.mark.parametrize("then", [Relu, Assign], ids=lambda operator: operator.type)
def test_what_requantizes_is_no_identity(kind: str, then: type[Relu] | type[Assign]) -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        made = REQUANTIZING[kind](b, x)
        return made, b.add(then, made)

    assert_unchanged(model_of(make, int8(2, 2, 3)))


def test_what_keeps_every_scale_of_an_axis_is_an_identity() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        there = b.add(Transpose, b.add(Transpose, x, (0, 1, 2)), (2, 1, 0))
        return b.add(Relu, b.add(Transpose, there, (2, 1, 0)), quantization=COARSE)

    model = model_of(make, int8(3, 2, 4, quantization=BY_CHANNEL))
    assert_unchanged(model)
    assert [operation.type for operation in simplify(model).operations] == ["RELU"]


def test_meanings_that_nobody_asks_for_are_gone() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        bare = b.add(Reinterpret, x, bare=True)
        other = b.add(Reinterpret, bare, 0, (9.0,))
        own = b.add(Reinterpret, b.add(Reinterpret, other, bare=True), 0, FINE.scale)
        return b.add(Concat, [b.add(Relu, own), b.add(Relu, other)], 0)

    model = model_of(make, int8(2, 2, 3))
    assert_unchanged(model)
    types = [operation.type for operation in simplify(model).operations]
    assert sorted(types) == ["CONCAT", "REINTERPRET", "RELU", "RELU"]


FOLDED: dict[str, Make] = {
    "bias of a convolution": lambda b, x: b.add(
        Add, b.add(Conv2D, x, weights(b, 2, 2, 1, 1)), numbers(0.3, -0.7).reshape(2, 1, 1)
    ),
    "bias of one that rounds": lambda b, x: b.add(
        Add,
        b.add(Conv2D, x, weights(b, 2, 2, 1, 1), quantization=COARSE),
        numbers(0.3, -0.7).reshape(2, 1, 1),
    ),
    "bias that is rounded": lambda b, x: b.add(
        Add,
        b.add(Conv2D, x, weights(b, 2, 2, 1, 1), quantization=COARSE),
        weights(b, 2, 1, 1, quantization=COARSE),
        quantization=FINE,
    ),
    "quantized bias of plain weights": lambda b, x: b.add(
        Add,
        b.add(Conv2D, b.add(Relu, x), np.ones((2, 2, 1, 1), np.float32)),
        weights(b, 2, 1, 1, quantization=COARSE),
    ),
    "normalization of a convolution": lambda b, x: b.add(
        BatchNormalization, b.add(Conv2D, x, weights(b, 2, 2, 1, 1)), *statistics()
    ),
    "normalization of one that rounds": lambda b, x: b.add(
        BatchNormalization,
        b.add(Conv2D, x, weights(b, 2, 2, 1, 1), quantization=COARSE),
        *statistics(),
        quantization=FINE,
    ),
    "normalization by quantized numbers": lambda b, x: b.add(
        BatchNormalization,
        b.add(Conv2D, b.add(Relu, x), np.ones((2, 2, 1, 1), np.float32)),
        weights(b, 2, quantization=COARSE),
        *statistics()[1:],
    ),
    "bias of a transposed convolution": lambda b, x: b.add(
        Add, b.add(Conv2DTranspose, x, weights(b, 2, 2, 1, 1)), numbers(0.3)
    ),
    "bias of a fully connected layer": lambda b, x: b.add(
        Add, b.add(FullyConnected, flat(b, x), weights(b, 3, 8)), numbers(0.3, -0.7, 0.1)
    ),
    "bias of a product that rounds": lambda b, x: b.add(
        Add,
        b.add(MatMul, flat(b, x), np.ones((8, 3), np.float32), quantization=COARSE),
        numbers(0.3, -0.7, 0.1),
    ),
    "quantized bias of a product": lambda b, x: b.add(
        Add,
        b.add(MatMul, b.add(Relu, flat(b, x)), np.ones((8, 3), np.float32)),
        weights(b, 3, quantization=COARSE),
    ),
    "bias that rounds after a product": lambda b, x: b.add(
        Add,
        b.add(MatMul, flat(b, x), weights(b, 8, 3)),
        weights(b, 3),
        quantization=COARSE,
    ),
}


def flat(b: Builder, x: Operand) -> Operand:
    return b.add(Reshape, x, (2, -1))


@pytest.mark.parametrize("kind", FOLDED)
def test_what_follows_a_quantized_layer_is_not_lost(kind: str) -> None:
    assert_unchanged(model_of(FOLDED[kind], int8(2, 2, 2, 2)))


def test_plain_layers_of_a_quantized_model_are_still_folded() -> None:
    def make(b: Builder, x: Operand, y: Operand) -> tuple[Operand, ...]:
        plain = b.add(Conv2D, y, np.ones((2, 2, 1, 1), np.float32))
        shifted = b.add(Add, plain, numbers(0.3, -0.7).reshape(2, 1, 1))
        return b.add(Conv2D, x, weights(b, 2, 2, 1, 1)), shifted

    model = model_of(make, int8(2, 2, 2, 2), float32(2, 2, 2, 2))
    assert_unchanged(model)
    assert [operation.type for operation in simplify(model).operations] == ["CONV_2D"] * 2


def assert_unchanged(model: Model) -> None:
    """Compare the simplified model with the original one, bit for bit."""
    random = np.random.default_rng(5)
    inputs = {}
    for name, operand in model.inputs.items():
        shape = operand.type.static_shape
        assert shape is not None
        drawn = random.integers(-128, 128, shape)
        inputs[name] = drawn.astype(operand.type.element_type.dtype)
    expected, actual = outputs_of(model, inputs), outputs_of(simplify(model), inputs)
    for name, array in expected.items():
        assert actual[name].dtype == array.dtype
        np.testing.assert_array_equal(actual[name], array)
        assert simplify(model).outputs[name].type.quantization == (
            model.outputs[name].type.quantization
        )
