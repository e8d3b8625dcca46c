"""Matrix products and determinants on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.devices.checks import Example, adds, agree, assert_refused, claimed_example, values_like

from crosschip.ir import Array, ElementType
from crosschip.ops.standard.matrix import FullyConnected, MatMul

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

MATRIX = (3, 4)
MATRICES = [
    *(((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4))),
    *(((2, 1, 3, 4), (5, 4, 2)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3,))),
]
CLAIMS: dict[str, Example] = {
    "MAT_MUL": (lambda b, x, y: b.add(MatMul, x, y, False, True), (MATRIX, MATRIX)),
    "FULLY_CONNECTED": (
        lambda b, x: b.add(FullyConnected, x, values_like(x, 5, 4), values_like(x, 5)),
        (MATRIX,),
    ),
    "DET": (adds("DET"), ((2, 4, 4),)),
}
DECOMPOSED: dict[str, set[str]] = {"onnxruntime": set(), "openvino": {"DET"}}
"""The operators that engines leave to others."""


def swapped(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:-2], *shape[:-3:-1])


@pytest.mark.parametrize(("x", "y"), MATRICES, ids=str)
def test_matmul(check: Checker, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    check(lambda b, x, y: b.add(MatMul, x, y), x, y)
    check(lambda b, x, y: b.add(MatMul, x, y, False, True), x, swapped(y), rankless_too=False)
    if len(y) > 1 or check.device.name == "openvino":
        both = swapped(x), swapped(y)
        check(lambda b, x, y: b.add(MatMul, x, y, True, True), *both, rankless_too=False)


@pytest.mark.parametrize(("x", "y"), MATRICES, ids=str)
def test_matmul_by_a_constant(check: Checker, x: tuple[int, ...], y: tuple[int, ...]) -> None:
    constant = np.random.default_rng(2).normal(size=y).astype(np.float32)
    symbolic_too = len(y) < 3 or check.device.name == "onnxruntime"
    check(lambda b, x: b.add(MatMul, x, constant), x, symbolic_too=symbolic_too)
    constant = np.random.default_rng(2).normal(size=x).astype(np.float32)
    symbolic_too = len(x) < 3 or check.device.name == "onnxruntime"
    check(lambda b, y: b.add(MatMul, constant, y), y, symbolic_too=symbolic_too)


def test_products_that_engines_get_wrong_are_declined(check: Checker) -> None:
    constant = np.ones((5, 3, 4), np.float32)
    if check.device.name == "openvino":
        check.declines(
            lambda b, x: b.add(MatMul, x, constant),
            (2, 3),
            typing=check.symbolic,
            why="MAT_MUL.y: a constant to whose batch",
        )
    else:
        check.declines(
            lambda b, x, y: b.add(MatMul, x, y, True), (3, 2), (3,), why="MAT_MUL.transpose_x"
        )


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("element_type", ["uint32", "uint64"])
def test_products_of_unsigned_integers(check: Checker, element_type: str) -> None:
    x, why = np.array([1, 2**31], element_type), f"x: an open size with {element_type}"
    check.typed(lambda b, x: b.add(MatMul, x, x), x, typing=check.static)
    check.declines(lambda b, x: b.add(MatMul, x, x), x, typing=check.symbolic, why=why)


def test_fully_connected(check: Checker) -> None:
    weight = np.random.default_rng(3).normal(size=(5, 12)).astype(np.float32)
    bias = np.arange(5, dtype=np.float32)
    check(lambda b, x: b.add(FullyConnected, x, weight), (2, 12))
    check(lambda b, x: b.add(FullyConnected, x, weight, bias), (2, 12))
    check(lambda b, x: b.add(FullyConnected, x, weight, bias), (2, 3, 4))
    check(
        lambda b, x, y, z: b.add(FullyConnected, x, y, z),
        (2, 4),
        (3, 4),
        (3,),
        symbolic_too=False,
        rankless_too=False,
    )


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    claims = claimed_example(check, CLAIMS[name])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


@pytest.mark.parametrize("shapes", [((0,), (2, 0, 2)), ((3, 0), (0,)), ((3, 0), (2, 0, 2))])
def test_sums_over_nothing(check: Checker, shapes: tuple[tuple[int, ...], ...]) -> None:
    """With dynamic dimensions, ONNX Runtime leaves such sums unwritten."""
    arrays: list[Array] = [np.zeros(shape, np.float32) for shape in shapes]
    if check.device.name == "onnxruntime":
        assert_refused(check, adds("MAT_MUL"), arrays, check.symbolic)
    else:
        agree(check, adds("MAT_MUL"), arrays, check.symbolic)
