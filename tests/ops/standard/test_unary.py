"""Functions of one number, compared with PyTorch and SciPy, and their decompositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.special
from tests.modelling import asks
from tests.ops.oracle import of_torch, torch

from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import YES, Support
from crosschip.ir import Array, Builder, ElementType, Operation, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard import activation, unary
from crosschip.ops.standard.activation import Sigmoid, Softsign
from crosschip.runtime.placement.placement import place

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

Function = Callable[..., Any]

OF_REALS: dict[type[Operator], Function] = {
    unary.Abs: torch.abs,
    unary.Neg: torch.neg,
    unary.Square: torch.square,
    unary.Sqrt: torch.sqrt,
    unary.Rsqrt: torch.rsqrt,
    unary.Reciprocal: torch.reciprocal,
    unary.Exp: torch.exp,
    unary.Log: torch.log,
    unary.Erf: torch.erf,
    unary.Floor: torch.floor,
    unary.Ceil: torch.ceil,
    unary.Round: torch.round,
    unary.IsNaN: torch.isnan,
    unary.IsInf: torch.isinf,
    unary.Sin: torch.sin,
    unary.Cos: torch.cos,
    unary.Tan: torch.tan,
    unary.Asin: torch.asin,
    unary.Acos: torch.acos,
    unary.Atan: torch.atan,
    unary.Sinh: torch.sinh,
    unary.Cosh: torch.cosh,
    unary.Asinh: torch.asinh,
    unary.Acosh: torch.acosh,
    unary.Atanh: torch.atanh,
}
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.5, -1.5, 2.5, 1e-40], np.float32)


def operator_name(operator: type[Operator]) -> str:
    return operator.type


@pytest.mark.parametrize("operator", OF_REALS, ids=operator_name)
def test_reals(check: Checker, operator: type[Operator]) -> None:
    like = of_torch(OF_REALS[operator])
    for shape in ((), (0, 3), (2, 3, 4)):
        check(lambda b, x: b.add(operator, x), like, shape)
    check(lambda b, x: b.add(operator, x), like, SPECIAL)
    check(lambda b, x: b.add(operator, x), like, np.linspace(-3, 3, 61))


def test_signs(check: Checker) -> None:
    numbers = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5, -1e-40], np.float32)
    signs = np.array([np.nan, 1, -1, 0, 0, 1, -1], np.float32)
    check(lambda b, x: b.add(unary.Sign, x), lambda x: signs, numbers)
    for zero in (0.0, -0.0):
        program = ReferenceProgram(model_of(unary.Neg, np.array([zero])))
        assert np.signbit(program.run([np.array([zero])])[0]) != np.signbit(zero)


@pytest.mark.parametrize(
    ("operator", "function"),
    [
        (unary.Abs, abs),
        (unary.Neg, lambda x: -x),
        (unary.Square, lambda x: x * x),
        (unary.Sign, lambda x: (x > 0) - (x < 0)),
    ],
    ids=lambda case: getattr(case, "type", ""),
)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"])
def test_integers_wrap_around(
    check: Checker, operator: type[Operator], function: Callable[[int], int], dtype: str
) -> None:
    limits = np.iinfo(dtype)
    numbers = np.array([limits.min, limits.max, 0, 1, 7, limits.max - 6, limits.min + 5], dtype)
    modulus = 2**limits.bits

    def like(x: Array) -> Array:
        results = [(function(n) - limits.min) % modulus + limits.min for n in x.tolist()]
        return np.array(results, dtype)

    check(lambda b, x: b.add(operator, x), like, numbers)


def test_infinities_of_a_sign(check: Checker) -> None:
    for negative in (False, True):
        for positive in (False, True):
            expected = np.array([[False, positive, negative], [False, False, False]])
            check(
                lambda b, x, n=negative, p=positive: b.add(unary.IsInf, x, n, p),
                lambda x, expected=expected: expected,
                np.array([[np.nan, np.inf, -np.inf], [0, 3e38, -3e38]], np.float32),
            )


def test_the_error_function_is_exact(check: Checker) -> None:
    odd = [0.0, -0.0, 6.5, -1e300, np.inf, -np.inf, np.nan, 0.46875, 4.0]
    numbers = np.concatenate([np.linspace(-6, 6, 997), np.geomspace(1e-300, 1e-3, 97), odd])
    check(lambda b, x: b.add(unary.Erf, x), scipy.special.erf, numbers, tolerance=1e-15)


def test_halves_are_rounded_to_even(check: Checker) -> None:
    halves = np.arange(-4, 5) + 0.5
    expected = np.array([-4.0, -2, -2, -0.0, 0, 2, 2, 4, 4])
    check(lambda b, x: b.add(unary.Round, x), lambda x: expected, halves, tolerance=0)


IN_DOUBLES: dict[type[Operator], tuple[Function, float, float]] = {
    unary.Rsqrt: (lambda x: x**-0.5, 0, np.inf),
    unary.Ceil: (np.ceil, -np.inf, np.inf),
    unary.Tan: (np.tan, -1.5, 1.5),
    unary.Asin: (np.arcsin, -1, 1),
    unary.Acos: (np.arccos, -1, 1),
    unary.Sinh: (np.sinh, -89, 89),
    unary.Cosh: (np.cosh, -89, 89),
    unary.Asinh: (np.arcsinh, -1.5e38, 1.5e38),
    unary.Acosh: (np.arccosh, 1, 1.5e38),
    unary.Atanh: (np.arctanh, -1, 1),
    activation.Elu: (lambda x: np.where(x > 0, x, np.expm1(x)), -np.inf, np.inf),
    activation.Softplus: (lambda x: np.logaddexp(0, x), -80, 19.5),
    Sigmoid: (scipy.special.expit, -87, np.inf),
    Softsign: (lambda x: x / (1 + abs(x)), -np.inf, 1e38),
}
"""The functions in float64, each on the interval where the float32 result is specified."""

MAGNITUDES = np.geomspace(1e-30, 1e38, 400)
EVERYWHERE = np.concatenate([-MAGNITUDES, [0], MAGNITUDES, np.linspace(-3, 3, 121)])


@pytest.mark.parametrize("operator", IN_DOUBLES, ids=operator_name)
def test_decompositions_keep_their_digits(operator: type[Operator]) -> None:
    function, low, high = IN_DOUBLES[operator]
    numbers = EVERYWHERE.astype(np.float32)
    numbers = numbers[(numbers >= low) & (numbers <= high)]
    with np.errstate(divide="ignore", over="ignore"):
        expected = function(numbers.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(decomposed(operator, numbers), expected, rtol=3e-6, atol=1e-37)


@pytest.mark.parametrize("operator", IN_DOUBLES, ids=operator_name)
def test_decompositions_keep_what_is_no_number(operator: type[Operator]) -> None:
    reference = ReferenceProgram(model_of(operator, SPECIAL)).run([SPECIAL])[0]
    np.testing.assert_allclose(decomposed(operator, SPECIAL), reference, rtol=1e-6)


def decomposed(operator: type[Operator], array: Array) -> Array:
    """Return the result of an operator's decomposition to core operators."""

    def supports(operation: Operation) -> Support:
        assert isinstance(operation, Operator)
        return YES if operation.core else Support.no(operation, "", "is not core")

    placed = place(model_of(operator, array), {"core": asks(supports)}).model
    (result,) = ReferenceProgram(placed).run([array])
    return result


def model_of(operator: type[Operator], array: Array) -> Any:
    b = Builder()
    x = b.input("x", TensorType(ElementType.of(array.dtype), array.shape))
    b.output("y", b.add(operator, x))
    return b.build()
