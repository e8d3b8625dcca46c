"""Logical and bitwise operators and WHERE on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import COMPUTED, claimed_elementwise, fitting, remarkable

from crosschip.hal import Options
from crosschip.ir import ElementType
from crosschip.ops.standard.logical import BitShift, ShiftDirection, Where

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

UNARY = ["NOT", "BITWISE_NOT"]
BINARY = ["AND", "OR", "XOR", "BITWISE_AND", "BITWISE_OR", "BITWISE_XOR", "BIT_SHIFT"]
DECOMPOSED = {"BIT_SHIFT"}
"""Both engines leave shifts to others by what is not known."""


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_claims_of_remarkable_numbers(check: Checker, name: str) -> None:
    claims = claimed_elementwise(check, name, 1 if name in UNARY else 2)
    assert bool(claims) == (name not in DECOMPOSED)


def test_shifts(check: Checker) -> None:
    bits = np.array([1, 200, 255, 7], np.uint8)
    for direction in ShiftDirection:

        def shift(b: Any, x: Any, places: int, direction: ShiftDirection = direction) -> Any:
            return b.add(BitShift, x, np.array(places, np.uint8), direction)

        for places in (0, 1, 7):
            check(lambda b, x, n=places: shift(b, x, n), bits)
        check.declines(lambda b, x: shift(b, x, 8), bits, why="BIT_SHIFT.input1: must be known")
    check.declines(lambda b, x, y: b.add(BitShift, x, y), bits, bits, why="must be known")


def test_choices_between_elements_of_any_type(check: Checker) -> None:
    condition = np.array([[True], [False]])
    for element_type in COMPUTED:
        x, y = (remarkable(element_type, seed)[0, :5] for seed in range(2))
        model = check.built(lambda b, *xs: b.add(Where, *xs), [condition, x, y])
        if check.device.supports(model.operations[0], Options()):
            _, x, y = fitting(check.device, model, [condition, x, y])
            expected = [np.where(condition, x, y)]
            check.compare(model, [condition, x, y], expected, 0)
        else:
            assert check.device.name == "openvino" or element_type is ElementType.BFLOAT16
