"""Functions, products, normalizations and reductions on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from crosschip.ir import Array
from crosschip.ops import Operator
from crosschip.ops.standard.activation import (
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Relu,
    Relu6,
    Sigmoid,
    Softmax,
    Swish,
    Tanh,
)
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mul, Pow, Sub
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization, LayerNormalization
from crosschip.ops.standard.reduction import ReduceMax, ReduceMean, ReduceSum
from crosschip.ops.standard.unary import Exp, Sqrt

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

UNARY = [Relu, Relu6, LeakyRelu, Sigmoid, Tanh, HardSigmoid, HardSwish, Swish, Sqrt, Exp, Assign]
BINARY = [Add, Sub, Mul, Div, Max, Min]
REDUCTIONS = [ReduceMean, ReduceSum, ReduceMax]


def operator_name(operator: type[Operator]) -> str:
    return operator.type


@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (1, 3, 4, 5), (2, 1, 3, 1, 4)], ids=str)
@pytest.mark.parametrize("operator", UNARY, ids=operator_name)
def test_unary(check: Checker, operator: type[Operator], shape: tuple[int, ...]) -> None:
    check(lambda b, x: b.add(operator, x), shape)


@pytest.mark.parametrize("operator", BINARY, ids=operator_name)
def test_binary(check: Checker, operator: type[Operator]) -> None:
    check(lambda b, x, y: b.add(operator, x, y), (2, 3), (2, 3))
    check(lambda b, x, y: b.add(operator, x, y), (2, 1, 4), (3, 1))
    check(lambda b, x, y: b.add(operator, x, y), (), (2, 3))
    check(lambda b, x, y: b.add(operator, x, y), (1, 2, 3, 4), (2, 1, 1))
    check(lambda b, x: b.add(operator, x, x), (2, 3))
    check(lambda b, x: b.add(operator, x, 0.5), (2, 3))
    check(lambda b, x: b.add(operator, np.ones((3, 1), np.float32), x), (2, 3, 4))


def test_power(check: Checker) -> None:
    positive = np.random.default_rng(0).uniform(0.1, 3, (2, 3)).astype(np.float32)
    check(lambda b, x, y: b.add(Pow, x, y), positive, (2, 3))
    check(lambda b, x: b.add(Pow, x, 2.0), (2, 3))
    check(lambda b, x: b.add(Pow, x, -0.5), positive)


def test_activation_parameters(check: Checker) -> None:
    check(lambda b, x: b.add(LeakyRelu, x, 0.3), (2, 3))
    check(lambda b, x: b.add(LeakyRelu, x, -0.5), (2, 3))
    check(lambda b, x: b.add(HardSigmoid, x, 0.5, 0.25), (4, 5))
    check(lambda b, x: b.add(HardSwish, x, 0.2, 0.4), (4, 5))
    check(lambda b, x: b.add(HardSwish, x, 1 / 6, 0.25), (4, 5))


def test_clip(check: Checker) -> None:
    check(lambda b, x: b.add(Clip, x, -0.5, 0.5), (4, 5))
    check(lambda b, x: b.add(Clip, x, min=0.0), (4, 5))
    check(lambda b, x: b.add(Clip, x, max=0.25), (4, 5))
    check(lambda b, x: b.add(Clip, x), (4, 5))
    integers = np.array([-(2**31), -7, -1, 0, 1, 5, 2**31 - 1], np.int32)
    check(lambda b, x: b.add(Clip, x, -1.5, 2.5), integers)
    check(lambda b, x: b.add(Clip, x, min=-1e6), integers)


def test_softmax(check: Checker) -> None:
    for axis in (0, 1, -1, -2):
        check(lambda b, x, axis=axis: b.add(Softmax, x, axis), (3, 4, 5))
    check(lambda b, x: b.add(Softmax, b.add(Mul, x, 1000.0)), (2, 5))


MATRICES = [
    *(((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4))),
    *(((2, 1, 3, 4), (5, 4, 2)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3,))),
]


def swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], *shape[:-3:-1])


@pytest.mark.parametrize(("x", "y"), MATRICES, ids=str)
def test_matmul(check: Checker, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    check(lambda b, x, y: b.add(MatMul, x, y), x, y)
    check(lambda b, x, y: b.add(MatMul, x, y, False, True), x, swapped(y), rankless_too=False)
    if len(y) > 1 or check.device.name == "openvino":
        both = swapped(x), swapped(y)
        check(lambda b, x, y: b.add(MatMul, x, y, True, True), *both, rankless_too=False)


@pytest.mark.parametrize(("x", "y"), MATRICES, ids=str)
def test_matmul_by_a_constant(check: Checker, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    constant = np.random.default_rng(2).normal(size=y).astype(np.float32)
    symbolic_too = len(y) < 3 or check.device.name == "onnxruntime"
    check(lambda b, x: b.add(MatMul, x, constant), x, symbolic_too=symbolic_too)
    constant = np.random.default_rng(2).normal(size=x).astype(np.float32)
    symbolic_too = len(x) < 3 or check.device.name == "onnxruntime"
    check(lambda b, y: b.add(MatMul, constant, y), y, symbolic_too=symbolic_too)


def test_axes_that_a_constant_adds(check: Checker) -> None:
    matrix, row = np.full((2, 3), 2, np.float32), np.ones((1, 1, 3), np.float32)
    check(lambda b, x: b.add(Add, b.add(MatMul, x, matrix), row), (1, 2))
    filters, bias = np.ones((3, 2, 1, 1), np.float32), np.ones((1, 1, 3, 1, 1), np.float32)
    check(lambda b, x: b.add(Add, b.add(Conv2D, x, filters), bias), (1, 2, 4, 4))


def test_products_that_engines_get_wrong_are_declined(check: Checker) -> None:
    constant = np.ones((5, 3, 4), np.float32)
    if check.device.name == "openvino":
        check.declines(
            lambda b, x: b.add(MatMul, x, constant),
            (2, 3),
            typing=check.symbolic,
            why="MAT_MUL.y: a constant to whose batch",
        )
    else:
        check.declines(
            lambda b, x, y: b.add(MatMul, x, y, True), (3, 2), (3,), why="MAT_MUL.transpose_x"
        )


def test_fully_connected(check: Checker) -> None:
    weight = np.random.default_rng(3).normal(size=(5, 12)).astype(np.float32)
    bias = np.arange(5, dtype=np.float32)
    check(lambda b, x: b.add(FullyConnected, x, weight), (2, 12))
    check(lambda b, x: b.add(FullyConnected, x, weight, bias), (2, 12))
    check(lambda b, x: b.add(FullyConnected, x, weight, bias), (2, 3, 4))
    check(
        lambda b, x, y, z: b.add(FullyConnected, x, y, z),
        (2, 4),
        (3, 4),
        (3,),
        symbolic_too=False,
        rankless_too=False,
    )


def statistics(channels: int) -> list[Array]:
    random = np.random.default_rng(4)
    return [random.uniform(0.5, 2, channels).astype(np.float32) for _ in range(4)]


def test_batch_normalization(check: Checker) -> None:
    check(lambda b, x: b.add(BatchNormalization, x, *statistics(3)), (2, 3, 4, 5))
    check(lambda b, x: b.add(BatchNormalization, x, *statistics(3), epsilon=0.1), (2, 3))
    check(lambda b, x: b.add(BatchNormalization, x, *statistics(3)), (2, 3, 7))
    check(lambda b, *xs: b.add(BatchNormalization, *xs), (2, 3, 4, 5), *statistics(3))


def test_layer_normalization(check: Checker) -> None:
    def parameters(*shape: int) -> list[Array]:
        return [np.random.default_rng(i).normal(size=shape).astype(np.float32) for i in range(2)]

    check(lambda b, x: b.add(LayerNormalization, x, *parameters(5)), (2, 3, 5))
    check(lambda b, x: b.add(LayerNormalization, x, *parameters(3, 5), -2, 0.1), (2, 3, 5))
    check(lambda b, x: b.add(LayerNormalization, x, *parameters(3, 5), 1), (2, 3, 5))
    check(lambda b, x: b.add(LayerNormalization, x, *parameters(2, 3, 5), 0), (2, 3, 5))
    check(lambda b, *xs: b.add(LayerNormalization, *xs), (2, 3, 5), *parameters(5))


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("operator", REDUCTIONS, ids=operator_name)
def test_reduction(check: Checker, operator: type[Operator], keepdim: bool) -> None:
    for axes in ((0,), (-1,), (1, 2), (-1, 0), (0, 1, 2), ()):
        check(lambda b, x, axes=axes: b.add(operator, x, axes, keepdim), (3, 4, 5))
    check(lambda b, x: b.add(operator, x, (2, 3), keepdim), (2, 3, 4, 5))


def test_integer_division_that_could_trap_is_declined(check: Checker) -> None:
    integers = np.array([7, -7, 2**31 - 1, -(2**31)], np.int32)
    if check.device.name == "openvino":
        check.declines(lambda b, x, y: b.add(Div, x, y), integers, integers, why="int32")
        return
    check(lambda b, x: b.add(Div, x, np.array([3, -3, 2, 7], np.int32)), integers)
    check.declines(lambda b, x, y: b.add(Div, x, y), integers, integers, why="DIV.input1")
    check.declines(lambda b, x: b.add(Div, x, np.int32(0)), integers, why="neither 0 nor -1")
    check.declines(lambda b, x: b.add(Div, x, np.int32(-1)), integers, why="neither 0 nor -1")
