"""Elementwise functions of one operand on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.devices.checks import SPECIAL, adds, claimed_elementwise, claimed_example

from crosschip.ir import ElementType
from crosschip.ops.standard.unary import Abs, Ceil, Floor, IsInf, IsNaN, Neg, Round, Sign

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

IMAGE = (1, 2, 6, 5)
_NAMES = """
    ABS NEG SIGN SQUARE SQRT RSQRT RECIPROCAL EXP LOG ERF FLOOR CEIL ROUND IS_NAN IS_INF
    SIN COS TAN ASIN ACOS ATAN SINH COSH ASINH ACOSH ATANH
"""
NAMES = _NAMES.split()
DECOMPOSED = {"onnxruntime": {"SQUARE", "RSQRT"}, "openvino": {"SQUARE", "RSQRT", "RECIPROCAL"}}
"""The operators that engines leave to others."""


@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (1, 3, 4, 5), (2, 1, 3, 1, 4)], ids=str)
@pytest.mark.parametrize("name", ["SQRT", "EXP"])
def test_unary(check: Checker, name: str, shape: tuple[int, ...]) -> None:
    check(adds(name), shape)


@pytest.mark.parametrize("name", ["SQRT", "EXP"])
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, (adds(name), (IMAGE,)))


@pytest.mark.parametrize("name", NAMES)
def test_claims_of_remarkable_numbers(check: Checker, name: str) -> None:
    claims = claimed_elementwise(check, name)
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


def test_signs_and_tests_of_what_is_no_number(check: Checker) -> None:
    for operator in (Sign, IsNaN, IsInf, Neg, Abs, Floor, Ceil, Round):
        check(lambda b, x, op=operator: b.add(op, x), SPECIAL)
    for signs in ((False, True), (True, False), (False, False)):
        check(lambda b, x, signs=signs: b.add(IsInf, x, *signs), SPECIAL)
    if check.device.name == "onnxruntime":
        check.declines(lambda b, x: b.add(Sign, x), SPECIAL.astype(np.float16), why="float16")
