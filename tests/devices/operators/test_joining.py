"""Concatenation and splitting on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    TABLE,
    Example,
    agree,
    assert_refused,
    claimed_example,
    integers,
    joined,
    zeros,
)
from tests.devices.conftest import rankless

from crosschip.ir import ElementType, ModelError
from crosschip.ops import operator_named
from crosschip.ops.standard.joining import Concat, Meshgrid, Split, Stack, Unstack

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

IMAGE, MATRIX, VECTOR = (1, 2, 6, 5), (3, 4), (7,)
CLAIMS: dict[str, Example] = {
    "CONCAT": (lambda b, x, y: b.add(Concat, [x, y], axis=1), (IMAGE, IMAGE)),
    "lists CONCAT": (lambda b, x, y: b.add(Concat, [x, y], axis=0), (VECTOR, VECTOR)),
    "SPLIT": (lambda b, x: b.add_all(Split, x, 2, (2, 4)), (IMAGE,)),
    "STACK": (lambda b, x, y: b.add(Stack, [x, y], axis=1), (MATRIX, MATRIX)),
    "UNSTACK": (lambda b, x: b.add_all(Unstack, x, 1), (MATRIX,)),
    "MESHGRID": (lambda b, x, y: b.add_all(Meshgrid, [x, y]), ((3,), (2,))),
}
DECOMPOSED = {"STACK", "UNSTACK", "MESHGRID"}
"""The examples that both engines leave to others."""


def test_concat(check: Checker) -> None:
    for axis in (0, 1, -1):
        check(lambda b, x, y, axis=axis: b.add(Concat, [x, y], axis=axis), (2, 3, 4), (2, 3, 4))
    check(lambda b, x, y, z: b.add(Concat, [x, y, z], axis=1), (2, 1), (2, 3), (2, 2))
    check(lambda b, x: b.add(Concat, [x, x], axis=0), (2, 3))
    check(lambda b, x: b.add(Concat, [x], axis=0), (2, 3))
    check(lambda b, x: b.add(Concat, [x, b.constant(np.ones((1, 3), np.float32))], axis=0), (2, 3))


def test_split(check: Checker) -> None:
    check(lambda b, x: b.add_all(Split, x, 1, (1, 2)), (2, 3, 4))
    check(lambda b, x: b.add_all(Split, x, -1, (1, 1, 2)), (2, 3, 4))
    check(lambda b, x: b.add_all(Split, x, 0, (2,)), (2, 3))
    check(lambda b, x: b.add_all(Split, x, 0, (0, 2)), (2, 3))
    check(lambda b, x: b.add_all(Split, x, 1, (1, 2))[1], (2, 3, 4))


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    claims = claimed_example(check, CLAIMS[name])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_of_no_known_rank(check: Checker, axis: int) -> None:
    fits = [np.ones((2, 2), np.float32), np.ones((2, 2), np.float32)]
    agree(check, joined(axis), fits, rankless)
    wrong = [zeros(3, 0), zeros(2, 2)] if axis == 1 else [zeros(0, 3), zeros(2, 2)]
    if axis != -1:
        assert_refused(check, joined(axis), wrong, rankless)


def test_negative_sizes(check: Checker) -> None:
    def split(b: Any, x: Any, sizes: Any) -> Any:
        return b.add_all(operator_named("SPLIT"), x, 1, sizes)

    assert_refused(check, split, [TABLE, integers(-1, 5)], check.static)


def test_parts_are_listed(check: Checker) -> None:
    with pytest.raises(ModelError, match="split: must list at least one size"):
        check.built(lambda b, x: b.add_all(Split, x, 0, []), [zeros(0)])
