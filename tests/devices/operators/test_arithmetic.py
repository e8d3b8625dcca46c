"""Arithmetic on two tensors, and clipping, on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    NUMBERS,
    OTHERS,
    Example,
    adds,
    agree,
    claimed_elementwise,
    claimed_example,
    positive_like,
    values_like,
)

from crosschip.ir import Builder, ElementType
from crosschip.ops import Operator, operator_named
from crosschip.ops.standard.arithmetic import Add, Clip, Div, Max, Min, Mod, Mul, Pow, Sub
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.unary import Exp

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

IMAGE, VECTOR = (1, 2, 6, 5), (7,)
_NAMES = "ADD SUB MUL DIV POW MAX MIN FLOOR_DIV MOD SQUARED_DIFFERENCE"
NAMES = _NAMES.split()
DECOMPOSED = {"onnxruntime": {"FLOOR_DIV", "SQUARED_DIFFERENCE"}, "openvino": {"FLOOR_DIV"}}
"""The operators that engines leave to others."""

CLAIMS: dict[str, Example] = {
    **{name: (adds(name), (IMAGE, IMAGE)) for name in ("ADD", "SUB", "MUL", "MAX", "MIN")},
    "DIV": (lambda b, x: b.add(Div, x, positive_like(x, 5)), (IMAGE,)),
    "POW": (lambda b, x: b.add(Pow, b.add(Exp, x), values_like(x, 5)), (IMAGE,)),
    "CLIP": (adds("CLIP", -100.0, 1e9), (IMAGE,)),
    "lists ADD": (adds("ADD"), (VECTOR, VECTOR)),
    "lists MUL": (adds("MUL"), (VECTOR, VECTOR)),
    "lists CLIP": (adds("CLIP", -100.0, 1e9), (VECTOR,)),
}


@pytest.mark.parametrize("operator", [Add, Sub, Mul, Div, Max, Min], ids=lambda o: o.type)
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


def test_clip(check: Checker) -> None:
    check(lambda b, x: b.add(Clip, x, -0.5, 0.5), (4, 5))
    check(lambda b, x: b.add(Clip, x, min=0.0), (4, 5))
    check(lambda b, x: b.add(Clip, x, max=0.25), (4, 5))
    check(lambda b, x: b.add(Clip, x), (4, 5))
    integers = np.array([-(2**31), -7, -1, 0, 1, 5, 2**31 - 1], np.int32)
    check(lambda b, x: b.add(Clip, x, -1.5, 2.5), integers)
    check(lambda b, x: b.add(Clip, x, min=-1e6), integers)


def test_axes_that_a_constant_adds(check: Checker) -> None:
    matrix, row = np.full((2, 3), 2, np.float32), np.ones((1, 1, 3), np.float32)
    check(lambda b, x: b.add(Add, b.add(MatMul, x, matrix), row), (1, 2))
    filters, bias = np.ones((3, 2, 1, 1), np.float32), np.ones((1, 1, 3, 1, 1), np.float32)
    check(lambda b, x: b.add(Add, b.add(Conv2D, x, filters), bias), (1, 2, 4, 4))


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, CLAIMS[name])


@pytest.mark.parametrize("name", NAMES)
def test_claims_of_remarkable_numbers(check: Checker, name: str) -> None:
    claims = claimed_elementwise(check, name, 2)
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


def test_integer_division_that_could_trap(check: Checker) -> None:
    integers = np.array([7, -7, 2**31 - 1, -(2**31)], np.int32)
    if check.device.name == "openvino":
        ends = np.array([7, -7, 2**24 - 1, -(2**24), 0, 5, -1, 6], np.int32)
        for whole in (ends, ends.astype(np.int64)):
            check(lambda b, x, y: b.add(Div, x, y), whole[:, None], whole[None])
            check(lambda b, x, n=whole: b.add(Add, b.add(Div, n, n[::-1].copy()), x), whole // 2)
        check.declines(lambda b, x: b.add(Div, b.constant(integers), x), integers, why="24 bits")
        return
    check(lambda b, x: b.add(Div, x, np.array([3, -3, 2, 7], np.int32)), integers)
    for divisors in (integers, np.array([0, -1, 0, -1], np.int32)):
        check(lambda b, x, y: b.add(Div, x, y), integers, divisors)
        check(lambda b, x, y=divisors: b.add(Div, x, y), integers)
    small = np.array([7, -7], np.int8)
    check.declines(lambda b, x, y: b.add(Div, x, y), small, small, why="neither 0 nor -1")


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
        check(lambda b, x, y: b.add(Mod, x, y), integers, np.array([0, -1, 4, 0], np.int32))
        check(lambda b, x: b.add(Mod, x, np.int32(-1)), integers)
        wide = integers.astype(np.int64)
        check.declines(lambda b, x: b.add(Mod, x, np.array(3), True), wide, why="is inexact")
    else:
        ends = np.array([7, -7, 2**24 - 1, -(2**24), 0, 5, -1, 6], np.int32)
        for fmod in (False, True):
            for whole in (ends, ends.astype(np.int64)):
                check(lambda b, x, y, f=fmod: b.add(Mod, x, y, f), whole[:, None], whole[None])
        check.declines(lambda b, x: b.add(Mod, x, np.int32(2**25)), integers, why="24 bits")


@pytest.mark.parametrize("fmod", [False, True])
def test_remainders_by_infinity(check: Checker, fmod: bool) -> None:
    dividends = np.array([[1, -1, 0, np.inf, -np.inf, np.nan]], np.float32)
    divisors = np.array([[np.inf], [-np.inf], [2.5]], np.float32)
    agree(check, adds("MOD", fmod=fmod), [dividends, divisors], check.static)
    agree(check, adds("MOD", divisors, fmod=fmod), [dividends], check.static)


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
        for bounds in ({"min": -far}, {"max": far}, {"min": -1.5, "max": 2**24}):
            check(lambda b, x, n=bounds: b.add(Clip, x, **n), integers)
        near = 2**24 + 1
        for name in ("MAX", "MIN"):
            check.declines(adds(name, np.array(near)), integers, why="is rounded to float32")
        check.declines(lambda b, x: b.add(Clip, x, max=near), integers, why="CLIP.max: is rounded")
    else:
        check(lambda b, x: b.add(Clip, x, -far, far), np.array([2**41, -(2**41), 2**40 - 1]))


@pytest.mark.parametrize("bounds", [(np.inf, np.inf), (-np.inf, -np.inf), (-np.inf, np.inf)])
def test_infinite_bounds(check: Checker, bounds: tuple[float, float]) -> None:
    agree(check, adds("CLIP", *bounds), [np.array([-1, 1], np.float32)], check.static)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("bounds", [{}, {"min": 0.0}, {"max": 0.0}])
def test_infinities_that_nothing_bounds(check: Checker, dtype: Any, bounds: Any) -> None:
    agree(check, adds("CLIP", **bounds), [np.array([-np.inf, 1, np.inf], dtype)], check.static)


def test_nan_and_bounds(check: Checker) -> None:
    check(adds("CLIP", -2.0, 3.0), NUMBERS)
    check(adds("MAX"), NUMBERS, OTHERS)
    check(adds("MIN"), NUMBERS, OTHERS)
    check(adds("MAX", np.float32(1)), NUMBERS)
    check(lambda b, x: b.add(operator_named("MIN"), b.constant(OTHERS), x), NUMBERS)


@pytest.mark.parametrize("name", ["MAX", "MIN"])
@pytest.mark.parametrize("pair", [(np.nan, -1.5), (-1.5, np.nan)])
def test_nan_among_constants(check: Checker, name: str, pair: tuple[float, float]) -> None:
    def build(b: Builder, x: Any) -> Any:
        known = [b.constant(np.array(number, np.float32)) for number in pair]
        return b.add(operator_named("ADD"), b.add(operator_named(name), *known), x)

    agree(check, build, [np.ones(2, np.float32)], check.static)
