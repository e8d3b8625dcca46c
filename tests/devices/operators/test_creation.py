"""Operators that create tensors from shapes, numbers and bounds, on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import Example, adds, agree, claimed_example, integer, integers, number

from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType
from crosschip.ops import operator_named
from crosschip.ops.standard.creation import Fill, FillLike, OneHot, ShapeOf

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

MATRIX = (3, 4)
CLAIMS: dict[str, Example] = {
    "SHAPE": (adds("SHAPE"), ((1, 2, 6, 5),)),
    "FILL": (lambda b, x: b.add(Fill, (2, 3), x), ((1,),)),
    "FILL_LIKE": (lambda b, x, y: b.add(FillLike, x, y), (MATRIX, (1,))),
    "ONE_HOT": (
        lambda b, x, y: b.add(OneHot, b.constant(integers(1, -1, 9)), 4, x, y, 0),
        ((1,), (1,)),
    ),
    "ONE_HOT of int32": (
        lambda b, x, y: b.add(
            OneHot, b.constant(np.array([[1, -1], [9, -9]], np.int32)), np.array([4]), x, y
        ),
        ((1,), (1,)),
    ),
}
DECOMPOSED = {
    "onnxruntime": {"FILL_LIKE", "ONE_HOT", "ONE_HOT of int32"},
    "openvino": {"FILL_LIKE"},
}
"""The examples that engines leave to others."""


def test_shape(check: Checker) -> None:
    for dtype in (ElementType.INT32, ElementType.INT64):
        check(lambda b, x, dtype=dtype: b.add(ShapeOf, x, dtype), (2, 3, 4))
        check(lambda b, x, dtype=dtype: b.add(ShapeOf, x, dtype), ())


def test_fill(check: Checker) -> None:
    for value in (np.float32(0.5), np.array([[3]], np.int32), np.bool_(True)):
        check(lambda b, x, v=value: (b.add(Fill, (2, 3), v), b.add(ShapeOf, x)), (2,))
    check(lambda b, x: b.add(Fill, (4, 1), x), (1,))
    check(lambda b, x: b.add(Fill, (), x), (1, 1), symbolic_too=False, rankless_too=False)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_computed_sizes(check: Checker, dtype: type[np.integer]) -> None:
    check(
        lambda b, s: b.add(Fill, s, np.array([2.5], np.float32)),
        integers(2, 3, dtype=dtype),
        symbolic_too=False,
        rankless_too=False,
    )


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    claims = claimed_example(check, CLAIMS[name])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED[check.device.name])


@pytest.mark.parametrize("bounds", [(10, 0, 1), (0, 10, -1), (10, 0, -3), (0, 10, 3), (5, 5, 1)])
def test_ranges(check: Checker, bounds: tuple[int, int, int]) -> None:
    check(adds("RANGE"), *map(integer, bounds), rankless_too=False)
    start, end, step = map(integer, bounds)
    check(lambda b, x: b.add(operator_named("RANGE"), x, end, step), start, rankless_too=False)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_computed_bounds(check: Checker, dtype: type[np.integer]) -> None:
    check(adds("RANGE"), *(np.array(n, dtype) for n in (9, 0, -2)), rankless_too=False)
    if check.device.name == "onnxruntime":
        check(adds("RANGE"), number(0.5), number(4), number(0.7))


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_ranges_are_counted_in_float64(check: Checker) -> None:
    """In float32, (0.7 - 0.1) / 0.2 is not more than 3."""
    random = np.random.default_rng(0)
    for start, end, step in random.uniform(0.05, 3, (50, 3)).astype(np.float32):
        bounds = [np.array(bound) for bound in (start, start + 5 * end, step)]
        agree(check, adds("RANGE"), bounds, check.static)


def test_one_of_uint32(check: Checker) -> None:
    def build(b: Builder, indices: Any) -> Any:
        ends = [b.constant(np.array(number, np.uint32)) for number in (0, 2**32 - 1)]
        return b.add(operator_named("ONE_HOT"), indices, 1, *ends)

    agree(check, build, [np.ones((), np.float32)], check.static)


def test_errors_of_steps_are_not_added_up(check: Checker) -> None:
    bounds: list[Array] = [np.array(number) for number in (0.0, 1.0, 1e-5)]
    model = check.built(adds("RANGE"), bounds, check.static)
    if check.device.supports(model.operations[0], Options()):
        (found,) = check.outputs_of(check.device, model, bounds)
        np.testing.assert_allclose(found, np.arange(100_000) * 1e-5, rtol=1e-15)
