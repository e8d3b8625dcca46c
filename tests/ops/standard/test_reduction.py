"""Reductions and cumulative reductions, compared with PyTorch and Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import of_torch, torch

from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    ModelError,
    TensorType,
)
from crosschip.ir.dimension import symbol
from crosschip.ops import Operator
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.reduction import (
    CumProd,
    CumSum,
    ReduceAll,
    ReduceAny,
    ReduceL1,
    ReduceL2,
    ReduceLogSum,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceMin,
    ReduceProd,
    ReduceSum,
    ReduceSumSquare,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

Function = Callable[..., Any]


def one_by_one(function: Function) -> Function:
    """Apply a single-axis reduction of PyTorch to several axes."""

    def call(x: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
        for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
            x = function(x, axis, keepdim=keepdim)
        return x

    return call


REDUCTIONS: dict[type[Operator], Function] = {
    ReduceSum: lambda x, axes, keepdim: torch.sum(x, axes, keepdim=keepdim),
    ReduceProd: one_by_one(lambda x, axis, keepdim: torch.prod(x, axis, keepdim=keepdim)),
    ReduceMean: lambda x, axes, keepdim: torch.mean(x, axes, keepdim=keepdim),
    ReduceMax: lambda x, axes, keepdim: torch.amax(x, axes, keepdim=keepdim),
    ReduceMin: lambda x, axes, keepdim: torch.amin(x, axes, keepdim=keepdim),
    ReduceL1: lambda x, axes, keepdim: torch.linalg.vector_norm(x, 1, axes, keepdim),
    ReduceL2: lambda x, axes, keepdim: torch.linalg.vector_norm(x, 2, axes, keepdim),
    ReduceSumSquare: lambda x, axes, keepdim: torch.sum(x.square(), axes, keepdim=keepdim),
    ReduceLogSum: lambda x, axes, keepdim: torch.log(torch.sum(x, axes, keepdim=keepdim)),
    ReduceLogSumExp: lambda x, axes, keepdim: torch.logsumexp(x, axes, keepdim=keepdim),
}
WITHOUT_ELEMENTS: dict[type[Operator], float] = {
    ReduceSum: 0,
    ReduceProd: 1,
    ReduceMean: math.nan,
    ReduceMax: -math.inf,
    ReduceMin: math.inf,
    ReduceL1: 0,
    ReduceL2: 0,
    ReduceSumSquare: 0,
    ReduceLogSum: -math.inf,
    ReduceLogSumExp: -math.inf,
}
INTEGER_TYPES = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)


def operator_name(operator: type[Operator]) -> str:
    return operator.type


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("operator", REDUCTIONS, ids=operator_name)
def test_reduction(check: Checker, operator: type[Operator], keepdim: bool) -> None:
    for axes in ((0,), (-1,), (1, 2), (-1, 0), ()):
        check(
            lambda b, x, axes=axes: b.add(operator, x, axes, keepdim),
            of_torch(
                lambda x, axes=axes: REDUCTIONS[operator](x, axes or (0, 1, 2), keepdim=keepdim)
            ),
            np.random.default_rng(7).uniform(-0.5, 2, (3, 4, 5)).astype(np.float32),
        )


@pytest.mark.parametrize("operator", REDUCTIONS, ids=operator_name)
def test_special_values(check: Checker, operator: type[Operator]) -> None:
    rows = [[np.nan, 1], [1, np.nan], [np.inf, 1], [-np.inf, 1], [-np.inf, -np.inf], [1e30, 2e30]]
    for axis in (0, 1):
        check(
            lambda b, x, axis=axis: b.add(operator, x, (axis,)),
            of_torch(lambda x, axis=axis: REDUCTIONS[operator](x, (axis,), True)),
            np.array(rows, np.float32),
        )


@pytest.mark.parametrize("operator", REDUCTIONS, ids=operator_name)
def test_no_elements(check: Checker, operator: type[Operator]) -> None:
    expected = np.full((2, 1), WITHOUT_ELEMENTS[operator], np.float32)
    check(lambda b, x: b.add(operator, x, (1,)), lambda x: expected, (2, 0))
    check(lambda b, x: b.add(operator, x, (0,)), lambda x: np.zeros((1, 0), np.float32), (2, 0))
    check(lambda b, x: b.add(operator, x), lambda x: expected[:1], (2, 0))


@pytest.mark.parametrize("operator", REDUCTIONS, ids=operator_name)
def test_a_scalar(check: Checker, operator: type[Operator]) -> None:
    x = np.float32(0.75)
    like = of_torch(lambda x: REDUCTIONS[operator](x.reshape(1), (0,), False))
    check(lambda b, x: b.add(operator, x), like, np.asarray(x))


@pytest.mark.parametrize("dtype", INTEGER_TYPES)
def test_integers_are_exact(check: Checker, dtype: type[np.integer[Any]]) -> None:
    limits = np.iinfo(dtype)
    rows = np.random.default_rng(8).integers(limits.min, limits.max, (4, 9), dtype, endpoint=True)
    rows[0, :2], rows[1] = [limits.min, limits.max], limits.max

    def wrapped(function: Callable[[list[int]], int]) -> Function:
        def call(x: Array) -> Array:
            span = 2**limits.bits
            found = map(function, x.tolist())
            return np.array([(v - limits.min) % span + limits.min for v in found], dtype)

        return call

    exact: dict[type[Operator], Callable[[list[int]], int]] = {
        ReduceSum: sum,
        ReduceProd: math.prod,
        ReduceMax: max,
        ReduceMin: min,
        ReduceL1: lambda row: sum(map(abs, row)),
        ReduceSumSquare: lambda row: sum(v * v for v in row),
    }
    for operator, function in exact.items():
        check(lambda b, x, o=operator: b.add(o, x, (1,), False), wrapped(function), rows)


def test_integers_without_elements(check: Checker) -> None:
    for operator, expected in ((ReduceMax, -128), (ReduceMin, 127), (ReduceProd, 1)):
        check(
            lambda b, x, o=operator: b.add(o, x, (1,), False),
            lambda x, e=expected: np.array([e, e], np.int8),
            np.zeros((2, 0), np.int8),
        )


def test_booleans(check: Checker) -> None:
    rows = np.array([[True, True], [True, False], [False, False]])
    everything, anything = np.array([True, False, False]), np.array([True, True, False])
    for operator, expected, empty in (
        (ReduceAll, everything, True),
        (ReduceMin, everything, True),
        (ReduceAny, anything, False),
        (ReduceMax, anything, False),
    ):
        check(lambda b, x, o=operator: b.add(o, x, (1,), False), lambda x, e=expected: e, rows)
        check(
            lambda b, x, o=operator: b.add(o, x, (-1,), False),
            lambda x, e=empty: np.array([e, e]),
            np.zeros((2, 0), np.bool_),
        )


def test_axes_computed_at_run_time() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3, 4)))
    one = b.input("one", TensorType(ElementType.INT64, (1,)))
    some = b.input("some", TensorType(ElementType.INT64, None))
    kept = b.add(ReduceSum, x, one).type.shape
    assert kept is not None
    assert len(kept) == 3
    removed = b.add(ReduceSum, x, one, False).type.shape
    assert removed is not None
    assert len(removed) == 2
    assert b.add(ReduceSum, x, some, False).type.shape is None
    four = b.input("four", TensorType(ElementType.INT64, (4,)))
    with pytest.raises(ModelError, match=r"REDUCE_SUM\.axes: are 4, but the input has 3"):
        b.add(ReduceSum, x, four, False)


def test_products_of_sizes_are_sizes() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), 3, symbol("W"))))
    count = b.add(ReduceProd, b.add(ShapeOf, x))
    flat = b.add(Reshape, x, count)
    assert flat.type.shape == (3 * symbol("N") * symbol("W"),)


def moved(x: Any, axis: int, value: float) -> Any:
    """Shift by one along the axis, with a value in the first entry."""
    first = torch.full_like(x.narrow(axis, 0, 1), value)
    return torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("operator", [CumSum, CumProd], ids=operator_name)
def test_up_to_each_element(check: Checker, operator: type[Operator], axis: int) -> None:
    for exclusive in (False, True):
        for reverse in (False, True):

            def like(x: Any, exclusive: bool = exclusive, reverse: bool = reverse) -> Any:
                function, neutral = (torch.cumsum, 0) if operator is CumSum else (torch.cumprod, 1)
                x = torch.flip(x, [axis]) if reverse else x
                x = moved(x, axis, neutral) if exclusive else x
                x = function(x, axis)
                return torch.flip(x, [axis]) if reverse else x

            for shape in ((3, 4, 5), (1, 1, 1)):
                check(
                    lambda b, x, e=exclusive, r=reverse: b.add(operator, x, axis, e, r),
                    of_torch(like),
                    shape,
                )


@pytest.mark.parametrize("operator", [CumSum, CumProd], ids=operator_name)
def test_up_to_each_integer(check: Checker, operator: type[Operator]) -> None:
    numbers = np.array([100, 27, 100, -128, 3], np.int8)
    wrapped = [100, 127, -29, 99, 102] if operator is CumSum else [100, -116, -80, 0, 0]
    check(lambda b, x: b.add(operator, x, 0), lambda x: np.array(wrapped, np.int8), numbers)
    check(lambda b, x: b.add(operator, x, 0, True), lambda x: np.zeros((0,), np.int8), numbers[:0])


def test_an_axis_computed_at_run_time(check: Checker) -> None:
    check(
        lambda b, x, axis: b.add(CumSum, x, axis),
        lambda x, axis: np.cumsum(x, 0),
        *((3, 4), np.array(-2)),
    )


BROKEN: list[tuple[Callable[[Builder, Any], Any], str]] = [
    (lambda b, x: b.add(ReduceSum, x, (2,)), r"REDUCE_SUM.axes: 2 is not in \[-2, 2\)"),
    (lambda b, x: b.add(ReduceProd, x, (1, -1)), "REDUCE_PROD.axes: .* names an axis twice"),
    (lambda b, x: b.add(ReduceAll, x), "REDUCE_ALL.input: takes bool, not float32"),
    (lambda b, x: b.add(CumSum, x, 2), r"CUM_SUM.axis: 2 is not in \[-2, 2\)"),
    (lambda b, x: b.add(CumProd, np.float32(1), 0), "CUM_PROD.axis: 0 is not in"),
]


@pytest.mark.parametrize(("build", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_broken_rules(build: Callable[[Builder, Any], Any], message: str) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (3, 5)))
    with pytest.raises(ModelError, match=message):
        build(b, x)


def test_integer_sums_wrap_around(check: Checker) -> None:
    integers = np.array([[2**31 - 1, 1], [-(2**31), -1]], np.int32)
    check(
        lambda b, x: b.add(ReduceSum, x, (1,)),
        of_torch(lambda x: torch.sum(x, 1, keepdim=True, dtype=torch.int32)),
        integers,
    )
