"""Comparisons on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import SPECIAL, claimed_elementwise, ones

from crosschip.ir import Builder, ElementType
from crosschip.ops.standard.comparison import (
    Comparison,
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from crosschip.ops.standard.creation import ShapeOf

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

COMPARISONS: list[type[Comparison]] = [Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual]
DECOMPOSED: dict[str, set[str]] = {"onnxruntime": {"NOT_EQUAL"}, "openvino": set()}
"""The operators that engines leave to others."""


@pytest.mark.parametrize("name", [operator.type for operator in COMPARISONS])
def test_claims_of_remarkable_numbers(check: Checker, name: str) -> None:
    claims = claimed_elementwise(check, name, 2)
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


@pytest.mark.parametrize("operator", COMPARISONS)
def test_comparisons_with_nan(check: Checker, operator: type[Comparison]) -> None:
    if operator.type not in DECOMPOSED[check.device.name]:
        pairs = np.broadcast_arrays(SPECIAL, SPECIAL[:, None])
        check(lambda b, x, y: b.add(operator, x, y), *map(np.ascontiguousarray, pairs))


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
@pytest.mark.parametrize("operator", COMPARISONS)
def test_comparisons_of_int64(check: Checker, operator: type[Comparison]) -> None:
    """Integers that float32 holds may be compared as float32."""
    numbers = np.array([[2**24 - 1], [3], [-(2**24)], [2**24 - 2]], np.int64)
    check(lambda b, x, y: b.add(operator, x, y), numbers, numbers.T)
    why = "input1: int64 is computed in 24 bits"
    check.declines(lambda b, x: b.add(operator, x, np.array(2**24 + 1)), numbers, why=why)

    def of_sizes(b: Builder, x: Any) -> Any:
        return b.add(operator, b.add(ShapeOf, x), np.array([2, 3], np.int64))

    check(of_sizes, ones(2, 4), rankless_too=False)
