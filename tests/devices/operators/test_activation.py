"""Activations on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import adds, agree, claimed_elementwise, claimed_example

from crosschip.ir import ElementType
from crosschip.ops.standard.activation import (
    Celu,
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    LogSoftmax,
    PRelu,
    Selu,
    Shrink,
    Softmax,
    Softplus,
    ThresholdedRelu,
)
from crosschip.ops.standard.arithmetic import Mul

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

IMAGE = (1, 2, 6, 5)
_FUNCTIONS = "RELU RELU6 LEAKY_RELU SIGMOID TANH HARD_SIGMOID HARD_SWISH SWISH"
_MORE = """
    GELU SOFTPLUS MISH SOFTSIGN ELU SELU CELU THRESHOLDED_RELU SHRINK SOFTMAX LOG_SOFTMAX PRELU
"""
FUNCTIONS = _FUNCTIONS.split()
NAMES = FUNCTIONS + _MORE.split()
DECOMPOSED: dict[str, set[str]] = {
    "onnxruntime": set(),
    "openvino": {"CELU", "THRESHOLDED_RELU", "SHRINK"},
}
"""The operators that engines leave to others."""

DECLINED: dict[str, list[tuple[Build, str]]] = {
    "onnxruntime": [(adds("CELU", 0.0), "alpha: is 0"), (adds("CELU", np.inf), "alpha: is inf")],
    "openvino": [
        (adds("HARD_SIGMOID", 0.0, 0.5), "alpha: is 0"),
        (adds("HARD_SIGMOID", 0.5, -np.inf), "beta: is -inf"),
        (adds("ELU", np.inf), "alpha: is inf"),
        (adds("HARD_SWISH", 1.0, 0.0), "beta: is 0"),
        (adds("SELU", gamma=0.0), "gamma: is 0"),
    ],
}
"""Operators with parameters that an engine is not given, and the reason."""


@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (1, 3, 4, 5), (2, 1, 3, 1, 4)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_unary(check: Checker, name: str, shape: tuple[int, ...]) -> None:
    check(adds(name), shape)


@pytest.mark.parametrize("name", [*FUNCTIONS, "SOFTMAX"])
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, (adds(name), (IMAGE,)))


@pytest.mark.parametrize("name", NAMES)
def test_claims_of_remarkable_numbers(check: Checker, name: str) -> None:
    claims = claimed_elementwise(check, name, 2 if name == "PRELU" else 1)
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


def test_activation_parameters(check: Checker) -> None:
    check(lambda b, x: b.add(LeakyRelu, x, 0.3), (2, 3))
    check(lambda b, x: b.add(LeakyRelu, x, -0.5), (2, 3))
    check(lambda b, x: b.add(HardSigmoid, x, 0.5, 0.25), (4, 5))
    check(lambda b, x: b.add(HardSwish, x, 0.2, 0.4), (4, 5))
    check(lambda b, x: b.add(HardSwish, x, 1 / 6, 0.25), (4, 5))


def test_parameters(check: Checker) -> None:
    numbers = np.linspace(-30, 30, 121, dtype=np.float32)
    check(lambda b, x: b.add(Elu, x, -0.5), numbers)
    check(lambda b, x: b.add(Selu, x, 2.0, 0.5), numbers)
    check(lambda b, x: b.add(Gelu, x, True), numbers)
    check(lambda b, x: b.add(Softplus, x, threshold=np.inf), numbers)
    check.declines(lambda b, x: b.add(Softplus, x, 2.0), numbers, why="SOFTPLUS.beta: 2.0 is not 1")
    check.declines(lambda b, x: b.add(Softplus, x, 1.0, 5.0), numbers, why="SOFTPLUS.threshold")
    for axis in (0, 1, -1):
        check(lambda b, x, axis=axis: b.add(LogSoftmax, x, axis), (2, 5))
    if check.device.name == "onnxruntime":
        check(lambda b, x: b.add(ThresholdedRelu, x, -0.5), numbers)
        check(lambda b, x: b.add(Shrink, x, 0.5, -0.5), numbers)
        check(lambda b, x: b.add(Celu, x, 2.5), numbers)


def test_parameters_that_are_declined(check: Checker) -> None:
    for build, why in DECLINED[check.device.name]:
        check.declines(build, (3,), why=why)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_gate_whose_parameters_are_not_rounded(
    check: Checker, dtype: type[np.floating[Any]]
) -> None:
    x = np.array([-2.5, -2.49, 0.1, 2.4], dtype)
    check(lambda b, x: b.add(HardSigmoid, x, 0.2, 0.5), x, tolerance=1e-3, rankless_too=False)


def test_softmax(check: Checker) -> None:
    for axis in (0, 1, -1, -2):
        check(lambda b, x, axis=axis: b.add(Softmax, x, axis), (3, 4, 5))
    check(lambda b, x: b.add(Softmax, b.add(Mul, x, 1000.0)), (2, 5))


def test_slopes(check: Checker) -> None:
    for shape, slope in (
        *(((2, 3, 4, 5), (3,)), ((2, 3, 4), (3,)), ((2, 3), (3,)), ((2, 3, 4, 5), (1,))),
        *(((5,), (5,)), ((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((2, 3, 4), ())),
    ):
        constant = np.random.default_rng(3).normal(size=slope).astype(np.float32)
        check(lambda b, x, c=constant: b.add(PRelu, x, c), shape, rankless_too=False)
        check(lambda b, x, w: b.add(PRelu, x, w), shape, slope, rankless_too=False)


def test_small_powers(check: Checker) -> None:
    """Adding a number to 1 before the logarithm must not lose its digits."""
    x = np.array([-99, -20, -8.7, -3, 0, 3, 99, np.inf, -np.inf, np.nan], np.float32)
    model = check.built(lambda b, x: b.add(Softplus, x), [x])
    (made,) = check.outputs_of(check.device, model, [x])
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp(0, x.astype(np.float64))
    np.testing.assert_allclose(made, wanted, rtol=2e-7, atol=1.2e-7)


def test_a_slope_of_0_and_infinity(check: Checker) -> None:
    agree(
        check, adds("LEAKY_RELU", 0.0), [np.array([-np.inf, np.inf, 1], np.float32)], check.symbolic
    )


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_of_infinity(check: Checker, approximate: bool) -> None:
    agree(check, adds("GELU", approximate), [np.array([np.inf, 1, -1], np.float32)], check.static)


@pytest.mark.parametrize("axis", [0, 1])
def test_hardmax_of_nan(check: Checker, axis: int) -> None:
    rows = np.array([[1, np.nan, np.inf], [np.nan, 2, -np.inf]], np.float32)
    agree(check, adds("HARDMAX", axis), [rows], check.static)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", ["SOFTMAX", "LOG_SOFTMAX"])
def test_a_nan_among_powers(check: Checker, name: str, dtype: Any) -> None:
    agree(check, adds(name, 0), [np.array([1, np.nan], dtype)], check.static)
    agree(check, adds(name, 0), [np.array([np.nan, 1], dtype)], check.static)


@pytest.mark.parametrize("name", ["ELU", "SELU"])
def test_what_is_multiplied_by_nan(check: Checker, name: str) -> None:
    agree(check, adds(name, np.nan), [np.array([-0.0, -1, 2], np.float32)], check.static)
