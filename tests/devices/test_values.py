"""Element by element operators: what an engine claims, it computes right, extremes included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.test_types import COMPUTED, TOLERANCES, sizes, values

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, ElementType, ModelError
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator, operator_named
from crosschip.ops.standard.activation import (
    Celu,
    Elu,
    Gelu,
    LogSoftmax,
    PRelu,
    Selu,
    Shrink,
    Softplus,
    ThresholdedRelu,
)
from crosschip.ops.standard.arithmetic import Clip, Mod
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from crosschip.ops.standard.logical import BitShift, Direction, Where
from crosschip.ops.standard.unary import Abs, Ceil, Floor, IsInf, IsNaN, Neg, Round, Sign

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

OF_ONE = """
    ABS NEG SIGN SQUARE SQRT RSQRT RECIPROCAL EXP LOG ERF FLOOR CEIL ROUND IS_NAN IS_INF
    SIN COS TAN ASIN ACOS ATAN SINH COSH TANH ASINH ACOSH ATANH RELU RELU6 LEAKY_RELU SIGMOID
    HARD_SIGMOID HARD_SWISH SWISH GELU SOFTPLUS MISH SOFTSIGN ELU SELU CELU THRESHOLDED_RELU SHRINK
    SOFTMAX LOG_SOFTMAX NOT BITWISE_NOT ASSIGN
"""
OF_TWO = """
    ADD SUB MUL DIV POW MAX MIN FLOOR_DIV MOD SQUARED_DIFFERENCE EQUAL NOT_EQUAL LESS LESS_EQUAL
    GREATER GREATER_EQUAL AND OR XOR BITWISE_AND BITWISE_OR BITWISE_XOR BIT_SHIFT PRELU
"""
UNARY, BINARY = OF_ONE.split(), OF_TWO.split()

DECOMPOSED = {
    "onnxruntime": {"SQUARE", "RSQRT", "FLOOR_DIV", "SQUARED_DIFFERENCE", "NOT_EQUAL", "BIT_SHIFT"},
    "openvino": {"SQUARE", "RSQRT", "RECIPROCAL", "FLOOR_DIV", "CELU", "THRESHOLDED_RELU", "SHRINK"}
    | {"BIT_SHIFT"},
}
"""The operators that engines leave to others; of BIT_SHIFT, that by what is not known."""

FINITE = np.array([0.0, -0.0, 1, -1, 0.5, -1.5, 2.5, 30, -30, 1e-7])
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5, -2.5], np.float32)


def numbers(element_type: ElementType, seed: int, device: str) -> Array:
    """Random elements with remarkable ones in front."""
    found = values(element_type, (4, 16), seed)
    if element_type in FLOATS:
        found.flat[: FINITE.size] = np.roll(FINITE, seed).astype(found.dtype)
    is_list = device == "openvino" and element_type is ElementType.INT64
    return sizes(found.ravel()) if is_list else found


def claimed(check: Checker, operator: type[Operator], count: int) -> set[ElementType]:
    """The element types that a device supports, each checked against the reference."""
    found = set()
    for element_type in COMPUTED:
        arrays = [numbers(element_type, seed, check.device.name) for seed in range(count)]
        try:
            model = check.built(lambda b, *xs: b.add(operator, *xs), arrays)
        except ModelError:
            continue
        if check.device.supports(model.operations[0], Options()):
            expected = check.outputs_of(ReferenceDevice(), model, arrays)
            check.compare(model, arrays, expected, TOLERANCES.get(element_type, 0))
            found.add(element_type)
    return found


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_claims(check: Checker, name: str) -> None:
    found = claimed(check, operator_named(name), 1 if name in UNARY else 2)
    assert bool(found) == (name not in DECOMPOSED[check.device.name])


@pytest.mark.parametrize("operator", [Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual])
def test_comparisons_with_nan(check: Checker, operator: type[Operator]) -> None:
    if operator.type not in DECOMPOSED[check.device.name]:
        pairs = np.broadcast_arrays(SPECIAL, SPECIAL[:, None])
        check(lambda b, x, y: b.add(operator, x, y), *map(np.ascontiguousarray, pairs))


def test_signs_and_tests_of_what_is_no_number(check: Checker) -> None:
    for operator in (Sign, IsNaN, IsInf, Neg, Abs, Floor, Ceil, Round):
        check(lambda b, x, op=operator: b.add(op, x), SPECIAL)
    for signs in ((False, True), (True, False), (False, False)):
        check(lambda b, x, signs=signs: b.add(IsInf, x, *signs), SPECIAL)
    if check.device.name == "onnxruntime":
        check.declines(lambda b, x: b.add(Sign, x), SPECIAL.astype(np.float16), why="float16")


def test_remainders(check: Checker) -> None:
    dividend = np.array([7.5, -7.5, 7.5, -7.5, 6, -6, np.nan, np.inf, 1, 1, -1], np.float32)
    divisor = np.array([2, 2, -2, -2, -3, 3, 1, 1, 0, np.inf, np.inf], np.float32)
    # OpenVINO finds NaN by infinity.
    count = 11 if check.device.name == "onnxruntime" else 9
    for fmod in (False, True):
        pair = dividend[:count], divisor[:count]
        check(lambda b, x, y, fmod=fmod: b.add(Mod, x, y, fmod), *pair)
    integers, three = np.array([7, -7, 6, 0], np.int32), np.array([3, -3, 2, 5], np.int32)
    if check.device.name == "onnxruntime":
        for fmod in (False, True):
            check(lambda b, x, fmod=fmod: b.add(Mod, x, three, fmod), integers)
        check.declines(lambda b, x, y: b.add(Mod, x, y), integers, three, why="MOD.input1: an int")
        check.declines(lambda b, x: b.add(Mod, x, np.int32(-1)), integers, why="neither 0 nor -1")
        wide = integers.astype(np.int64)
        check.declines(lambda b, x: b.add(Mod, x, np.array(3), True), wide, why="is inexact")
    else:
        check.declines(lambda b, x: b.add(Mod, x, three), integers, why="int32 is not supported")


def test_slopes(check: Checker) -> None:
    for shape, slope in (
        *(((2, 3, 4, 5), (3,)), ((2, 3, 4), (3,)), ((2, 3), (3,)), ((2, 3, 4, 5), (1,))),
        *(((5,), (5,)), ((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (3, 1)), ((2, 3, 4), ())),
    ):
        constant = np.random.default_rng(3).normal(size=slope).astype(np.float32)
        check(lambda b, x, c=constant: b.add(PRelu, x, c), shape, rankless_too=False)
        check(lambda b, x, w: b.add(PRelu, x, w), shape, slope, rankless_too=False)


def test_shifts(check: Checker) -> None:
    bits = np.array([1, 200, 255, 7], np.uint8)
    for direction in Direction:

        def shift(b: Any, x: Any, places: int, direction: Direction = direction) -> Any:
            return b.add(BitShift, x, np.array(places, np.uint8), direction)

        for places in (0, 1, 7):
            check(lambda b, x, n=places: shift(b, x, n), bits)
        check.declines(lambda b, x: shift(b, x, 8), bits, why="BIT_SHIFT.input1: must be known")
    check.declines(lambda b, x, y: b.add(BitShift, x, y), bits, bits, why="must be known")


def test_choices_between_elements_of_any_type(check: Checker) -> None:
    condition = np.array([[True], [False]])
    for element_type in COMPUTED:
        x, y = (numbers(element_type, seed, "")[0, :5] for seed in range(2))
        if check.device.name == "openvino":
            x, y = sizes(x), sizes(y)
        model = check.built(lambda b, *xs: b.add(Where, *xs), [condition, x, y])
        if check.device.supports(model.operations[0], Options()):
            expected = [np.where(condition, x, y)]
            check.compare(model, [condition, x, y], expected, 0)
        else:
            assert check.device.name == "openvino" or element_type is ElementType.BFLOAT16


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


def test_small_powers(check: Checker) -> None:
    """A number added to 1 before its logarithm is taken counts to the last digit of 1."""
    x = np.array([-99, -20, -8.7, -3, 0, 3, 99, np.inf, -np.inf, np.nan], np.float32)
    model = check.built(lambda b, x: b.add(Softplus, x), [x])
    (made,) = check.outputs_of(check.device, model, [x])
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp(0, x.astype(np.float64))
    np.testing.assert_allclose(made, wanted, rtol=2e-7, atol=1.2e-7)


@pytest.mark.parametrize("bounds", [(-1.0, -1.0), (-7.5, 3.5), (2.0, 1e9), (-np.inf, np.inf)])
def test_bounds_beyond_the_type(check: Checker, bounds: tuple[float, float]) -> None:
    types = {
        "onnxruntime": (np.uint8, np.int8, np.int32),
        "openvino": (np.uint16, np.int16, np.int32),
    }
    for element_type in types[check.device.name]:
        check(lambda b, x: b.add(Clip, x, *bounds), np.arange(6).astype(element_type))


def test_bounds_beyond_what_is_computed(check: Checker) -> None:
    integers, far = np.array([5, -5]), 2**40
    if check.device.name == "openvino":
        for bounds in ({"min": -far}, {"max": far}):
            check.declines(
                lambda b, x, n=bounds: b.add(Clip, x, **n), integers, why="int64 is not supported"
            )
    else:
        check(lambda b, x: b.add(Clip, x, -far, far), np.array([2**41, -(2**41), 2**40 - 1]))
