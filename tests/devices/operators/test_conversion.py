"""Conversions between element types on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    COMPUTED,
    adds,
    agree,
    claimed_elementwise,
    claimed_example,
    integers,
)

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Builder, ElementType, Operand
from crosschip.ir.types import FLOATS, INTEGERS
from crosschip.lowering.narrowing import narrowing
from crosschip.ops.standard.conversion import Cast

if TYPE_CHECKING:
    from tests.devices.conftest import Checker


@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (1, 3, 4, 5), (2, 1, 3, 1, 4)], ids=str)
def test_assign(check: Checker, shape: tuple[int, ...]) -> None:
    check(adds("ASSIGN"), shape)


def test_cast(check: Checker) -> None:
    reals = np.array([-2.9, -0.4, 0.0, 0.4, 1.0, 2.9, 100.7], np.float32)
    check(lambda b, x: b.add(Cast, x, ElementType.INT32), reals)
    check(lambda b, x: b.add(Cast, x, ElementType.INT8), reals)
    check(lambda b, x: b.add(Cast, x, ElementType.BOOL), reals)
    check(lambda b, x: b.add(Cast, x, ElementType.FLOAT16), reals)
    check(lambda b, x: b.add(Cast, x, ElementType.FLOAT32), np.array([True, False]))
    check(lambda b, x: b.add(Cast, x, ElementType.FLOAT32), integers(-7, 0, 2**24))
    check(lambda b, x: b.add(Cast, x, ElementType.INT32), integers(-7, 0, 2**31 - 1))


def test_claims(check: Checker) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, (adds("ASSIGN"), ((1, 2, 6, 5),)))
    assert ElementType.FLOAT32 in claimed_elementwise(check, "ASSIGN")


@pytest.mark.parametrize("source", COMPUTED, ids=str)
def test_casts(check: Checker, source: ElementType) -> None:
    for target in COMPUTED:
        array = np.array([0, 1, 2, 3, 100], np.int8).astype(source.dtype)
        if source in FLOATS and target is not ElementType.BOOL:
            array = array + np.asarray(0.5, source.dtype)
        if source in FLOATS and target in INTEGERS:
            array[-1] = -0.75

        def cast(b: Builder, x: Any, target: ElementType = target) -> Operand:
            return b.add(Cast, x, target)

        model = check.built(cast, [array])
        if narrowing(check.device, Options())(model).answers[0]:
            expected = check.outputs_of(ReferenceDevice(), model, [array])
            check.compare(model, [array], expected, 0)


def test_nan_is_true(check: Checker) -> None:
    for array in (np.array(np.nan, np.float32), np.array([0, np.nan, -0.0, 2], np.float32)):
        agree(check, adds("CAST", ElementType.BOOL), [array], check.static)
