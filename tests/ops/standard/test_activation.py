"""Activation functions, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import functional, of_torch, torch

from crosschip.ir import Array
from crosschip.ops import Operator
from crosschip.ops.standard.activation import (
    Celu,
    Elu,
    Gelu,
    Hardmax,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    LogSoftmax,
    Mish,
    PRelu,
    Relu,
    Relu6,
    Selu,
    Shrink,
    Sigmoid,
    Softmax,
    Softplus,
    Softsign,
    Swish,
    Tanh,
    ThresholdedRelu,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 20, -20, 90, -90, 1e-40], np.float32)

FUNCTIONS: list[tuple[Any, Any, Any]] = [
    (Gelu, {}, functional.gelu),
    (Gelu, {"approximate": True}, lambda x: functional.gelu(x, approximate="tanh")),
    (Softplus, {}, functional.softplus),
    (Softplus, {"beta": 2.5, "threshold": 1.0}, lambda x: functional.softplus(x, 2.5, 1.0)),
    (Softplus, {"beta": -0.5}, lambda x: functional.softplus(x, -0.5)),
    (Mish, {}, functional.mish),
    (Softsign, {}, functional.softsign),
    (Elu, {}, functional.elu),
    (Elu, {"alpha": -0.5}, lambda x: functional.elu(x, -0.5)),
    (Selu, {}, torch.selu),
    (Selu, {"alpha": 2.0, "gamma": 0.5}, lambda x: functional.elu(x, 2.0) * 0.5),
    (Celu, {}, functional.celu),
    (Celu, {"alpha": 2.5}, lambda x: functional.celu(x, 2.5)),
    (Celu, {"alpha": -1.5}, lambda x: functional.celu(x, -1.5)),
    (Shrink, {"bias": 0.5}, functional.softshrink),
    (Shrink, {"bias": 1.25, "lambd": 1.25}, lambda x: functional.softshrink(x, 1.25)),
]


@pytest.mark.parametrize(
    ("operator", "parameters", "function"),
    FUNCTIONS,
    ids=[f"{operator.type} {parameters}" for operator, parameters, _ in FUNCTIONS],
)
def test_functions(check: Checker, operator: Any, parameters: Any, function: Any) -> None:
    def build(b: Any, x: Any) -> Any:
        return b.add(operator, x, **parameters)

    for shape in ((), (0, 3), (2, 3, 4)):
        check(build, of_torch(function), shape)
    check(build, of_torch(function), np.linspace(-8, 8, 101, dtype=np.float32))
    check(build, of_torch(function), np.linspace(-8, 8, 101))
    if operator is Gelu:
        # PyTorch finds NaN of infinity there, depending on how many numbers it computes at a time.
        check(build, of_torch(function), SPECIAL[2:])
        check(build, lambda x: x, np.array([np.nan, np.inf], np.float32))
    elif operator is not Shrink:
        check(build, of_torch(function), SPECIAL)


def test_thresholds(check: Checker) -> None:
    numbers = np.array([np.nan, np.inf, -np.inf, -0.75, -0.5, 0.5, 0.75, 1, 2], np.float32)
    for alpha in (-0.5, 0.5):
        check(
            lambda b, x, alpha=alpha: b.add(ThresholdedRelu, x, alpha),
            of_torch(lambda x, alpha=alpha: functional.threshold(x, alpha, 0)),
            numbers[1:],
        )
    check(lambda b, x: b.add(ThresholdedRelu, x), lambda x: np.zeros(1, np.float32), numbers[:1])
    check(lambda b, x: b.add(Shrink, x), of_torch(functional.hardshrink), numbers[1:])
    check(lambda b, x: b.add(Shrink, x), lambda x: np.zeros(1, np.float32), numbers[:1])
    check(
        lambda b, x: b.add(Shrink, x, 0.25, -0.5),
        lambda x: np.array([-0.5, 0.5, 0.5], np.float32),
        np.array([-0.75, 0.25, 0.75], np.float32),
    )


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_rectified_integers(check: Checker, dtype: type[np.integer[Any]]) -> None:
    limits = np.iinfo(dtype)
    numbers = np.array([limits.min, limits.max, 0, 1], dtype)
    check(lambda b, x: b.add(Relu, x), of_torch(torch.relu), numbers)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (0, 3, 2)], ids=str)
def test_a_slope_for_each_channel(check: Checker, shape: tuple[int, ...]) -> None:
    check(lambda b, x, w: b.add(PRelu, x, w), of_torch(functional.prelu), shape, (3,))
    check(lambda b, x, w: b.add(PRelu, x, w), of_torch(functional.prelu), shape, (1,))


SLOPES = [((4,), (4,)), ((4,), ()), ((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((2, 2), (1, 2))]


@pytest.mark.parametrize(("shape", "slope"), SLOPES, ids=str)
def test_broadcast_slopes(check: Checker, shape: tuple[int, ...], slope: tuple[int, ...]) -> None:
    like = of_torch(lambda x, w: torch.clamp_min(x, 0) + torch.clamp_max(x, 0) * w)
    check(lambda b, x, w: b.add(PRelu, x, w), like, shape, slope)


def test_a_slope_of_integers(check: Checker) -> None:
    numbers, slopes = np.array([[-3, 2, -5]]), np.array([2, 7, -1])
    check(lambda b, x, w: b.add(PRelu, x, w), lambda x, w: np.array([[-6, 2, 5]]), numbers, slopes)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_log_softmax(check: Checker, axis: int) -> None:
    like = of_torch(lambda x: torch.log_softmax(x, axis))
    for shape in ((3, 4, 5), (0, 2, 3), (2, 1, 1)):
        check(lambda b, x: b.add(LogSoftmax, x, axis), like, shape)
    for greatest in (1e30, -1e30, 80.0):
        apart = np.array([[greatest, 0, -greatest], [1, 2, greatest]], np.float32)
        check(lambda b, x: b.add(LogSoftmax, x, axis), like, apart)
    undefined = np.array([[np.nan, 0, 1], [-np.inf, -np.inf, -np.inf], [0, -np.inf, 0]], np.float32)
    check(lambda b, x: b.add(LogSoftmax, x, axis), like, undefined)


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_hardmax(check: Checker, axis: int) -> None:
    def like(x: Array) -> Array:
        greatest = x == x.max(axis, keepdims=True)
        return np.asarray(greatest & (np.cumsum(greatest, axis) == 1)).astype(x.dtype)

    check(lambda b, x: b.add(Hardmax, x, axis), like, (3, 4, 5))
    ties = np.array([[[1, 1], [0, 1]], [[1, 0], [0, 0]]], np.float32)
    check(lambda b, x: b.add(Hardmax, x, axis), like, ties)


def test_hardmax_of_nothing(check: Checker) -> None:
    check(lambda b, x: b.add(Hardmax, x, 1), lambda x: x, (2, 0))


Function = Callable[..., Any]


PLAIN: dict[type[Operator], Function] = {
    Relu: torch.relu,
    Relu6: functional.relu6,
    LeakyRelu: functional.leaky_relu,
    Sigmoid: torch.sigmoid,
    Tanh: torch.tanh,
    HardSigmoid: lambda x: torch.clamp(0.2 * x + 0.5, 0, 1),
    HardSwish: functional.hardswish,
    Swish: functional.silu,
}


def operator_name(operator: type[Operator]) -> str:
    return operator.type


@pytest.mark.parametrize("operator", PLAIN, ids=operator_name)
def test_without_parameters(check: Checker, operator: type[Operator]) -> None:
    for shape in ((), (0, 3), (7,), (2, 3, 4)):
        check(lambda b, x: b.add(operator, x), of_torch(PLAIN[operator]), shape)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, 1e-40], np.float32)
    if operator not in (Swish, HardSwish):
        check(lambda b, x: b.add(operator, x), of_torch(PLAIN[operator]), special)


def test_activation_parameters(check: Checker) -> None:
    check(
        lambda b, x: b.add(LeakyRelu, x, -0.5),
        of_torch(lambda x: functional.leaky_relu(x, -0.5)),
        (3, 4),
    )
    check(lambda b, x: b.add(HardSigmoid, x, 1 / 6, 0.5), of_torch(functional.hardsigmoid), (50,))
    check(
        lambda b, x: b.add(HardSwish, x, 0.3, 0.25),
        of_torch(lambda x: x * torch.clamp(0.3 * x + 0.25, 0, 1)),
        (50,),
    )


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_softmax(check: Checker, axis: int) -> None:
    like = of_torch(lambda x: torch.softmax(x, axis))
    check(lambda b, x: b.add(Softmax, x, axis), like, (3, 4, 5))
    check(lambda b, x: b.add(Softmax, x, axis), like, np.full((2, 3), 1e30, np.float32))
