"""What rounding explains of a result, from what its operation read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32, model_of, outputs_of

from crosschip.accuracy.rounding import ROUNDINGS, RoundingProbe, explained_by_rounding
from crosschip.hal import Precision
from crosschip.ir import Array, Builder, Model, Operand
from crosschip.ops.standard.activation import Gelu, Relu, Sigmoid, Softmax, Tanh
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Mul, Sub
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.normalization import LayerNormalization
from crosschip.ops.standard.unary import Exp, Sqrt

EPSILON = 2.0**-23
UNIT = ROUNDINGS * EPSILON

Make = Callable[[Builder, Operand], Operand]


def explained(make: Make, x: Array, precision: Precision = Precision.FLOAT32) -> float:
    """What rounding explains of the output of one input, which the reference runs on."""
    model = model_of(make, float32(*x.shape))
    probe = RoundingProbe(model)
    outputs = {} if probe.exposed is None else outputs_of(probe.exposed, {"x0": x})
    if precision is Precision.FLOAT32:
        return probe.roundings({"x0": x}, outputs)["y0"]
    (operand,), (output,) = model.inputs.values(), model.outputs.values()
    return explained_by_rounding(model, output, {operand: x}.get, precision)


X = np.array([[3.0, -18.0], [0.25, 1.0]], np.float32)
SMALL = X * np.float32(1e-9)


@pytest.mark.parametrize(
    ("make", "x", "size"),
    [
        pytest.param(lambda b, x: b.add(Sigmoid, x), X, 1, id="a function through 1"),
        pytest.param(lambda b, x: b.add(Softmax, x), SMALL, 1, id="whatever it reads"),
        pytest.param(lambda b, x: b.add(Sub, x, np.float32(17)), X, 18, id="a difference"),
        pytest.param(lambda b, x: b.add(Add, x, x), SMALL, 1.8e-8, id="a sum of small numbers"),
        pytest.param(lambda b, x: b.add(Mul, x, np.float32(1e-10)), X, 1.8e-9, id="a product"),
        pytest.param(lambda b, x: b.add(MatMul, x, 2 * X), X, 18 * 36, id="a matrix product"),
        pytest.param(lambda b, x: b.add(Gelu, x), SMALL, 1.8e-8, id="a gated function"),
        pytest.param(lambda b, x: b.add(Exp, x), X, 0, id="as exact as its result"),
        pytest.param(lambda b, x: b.add(Div, x, np.float32(1e9)), X, 0, id="a quotient"),
        pytest.param(
            lambda b, x: b.add(Reshape, b.add(Transpose, b.add(Tanh, x), (1, 0)), (4,)), X, 1,
            id="behind what moves elements",
        ),
        pytest.param(
            lambda b, x: b.add(Clip, b.add(Relu, b.add(Sigmoid, x)), 0.0, 0.5), X, 1,
            id="behind what cuts them off",
        ),
        pytest.param(lambda b, x: b.add(Sqrt, b.add(Sigmoid, x)), X, 0, id="not behind others"),
        pytest.param(
            lambda b, x: b.add(Add, x, np.array([0, -1e9], np.float32)), X, 18, id="not of masks"
        ),
    ],
)  # fmt: skip
def test_the_size_is_that_of_what_the_operation_read(make: Make, x: Array, size: float) -> None:
    assert explained(make, x) == pytest.approx(UNIT * size)


def test_a_convolution_and_its_bias() -> None:
    filter, bias = np.full((1, 2, 1, 1), 3, np.float32), np.full(1, 100, np.float32)
    make = lambda b, x: b.add(Conv2D, x, filter, bias)  # noqa: E731
    x = np.full((1, 2, 1, 1), 5, np.float32)
    assert explained(make, x) == pytest.approx(UNIT * 100)
    assert explained(lambda b, x: b.add(Conv2D, x, filter), x) == pytest.approx(UNIT * 15)


def test_a_normalization_loses_the_digits_of_its_variance() -> None:
    scale = np.ones(4, np.float32)
    make = lambda b, x: b.add(LayerNormalization, x, scale)  # noqa: E731
    far = np.float32(1000) + np.arange(4, dtype=np.float32).reshape(1, 4)
    assert explained(make, far) > 1e4 * explained(make, far - 1000)


def test_the_arithmetic_decides_what_a_spacing_is() -> None:
    made = explained(lambda b, x: b.add(Sigmoid, x), X, Precision.BFLOAT16)
    assert made == ROUNDINGS * 2.0**-7


def test_nothing_is_exposed_for_what_needs_no_sizes() -> None:
    assert RoundingProbe(model_of(lambda b, x: b.add(Sigmoid, x), float32(2))).exposed is None
    deep = model_of(lambda b, x: b.add(Add, b.add(Exp, x), x), float32(2))
    exposed = RoundingProbe(deep).exposed
    assert exposed is not None
    assert [operand.name for operand in exposed.outputs.values()] == ["exp_0"]


@given(st.floats(-60, 60), st.integers(0, 2**31))
def test_float32_itself_stays_within_it(offset: float, seed: int) -> None:
    """Sigmoids and differences by way of float32, as engines compute them, against float64."""
    x = (np.random.default_rng(seed).standard_normal(64) + offset).astype(np.float32)

    def sigmoid(b: Builder, x: Operand) -> Operand:
        return b.add(Sigmoid, x)

    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    rough = (np.tanh(x / np.float32(2)) + np.float32(1)) / np.float32(2)
    assert np.abs(rough - exact).max() <= explained(sigmoid, x)
    mean = np.float32(offset)
    difference = (x + mean) - mean
    wanted = x.astype(np.float64)
    off = np.abs(difference - wanted).max()
    model: Model = model_of(lambda b, y: b.add(Sub, y, mean), float32(64))
    (operand,), (output,) = model.inputs.values(), model.outputs.values()
    assert off <= explained_by_rounding(model, output, {operand: x + mean}.get)
