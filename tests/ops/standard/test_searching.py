"""Maximum, top k, unique, nonzero and sorted elements, compared with other implementations."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import of_onnx, of_torch, torch

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    ModelError,
    TensorType,
)
from crosschip.ir.dimension import is_unknown
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, SearchSorted, TopK, Unique

if TYPE_CHECKING:
    from tests.ops.conftest import Checker


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "bool"])
def test_non_zero(check: Checker, dtype: str) -> None:
    for shape in ((3, 4), (5,), (2, 0), (2, 2, 2)):
        values = (np.random.default_rng(0).random(shape) > 0.5).astype(dtype)
        check(
            lambda b, x: b.add(NonZero, x),
            of_torch(lambda x: torch.nonzero(x).T),
            values,
            counted=True,
        )
    check(lambda b, x: b.add(NonZero, x), of_onnx("NonZero"), np.ones((), dtype), counted=True)


def test_what_is_zero(check: Checker) -> None:
    values = np.array([-0.0, np.nan, 1e-45, np.inf], np.float32)
    check(lambda b, x: b.add(NonZero, x), lambda x: np.array([[1, 2, 3]]), values, counted=True)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", ["int64", "float32", "int8", "bool"])
def test_unique(check: Checker, dtype: str, axis: int | None) -> None:
    values = np.random.default_rng(0).integers(0, 2, (5, 3)).astype(dtype)

    def by_torch(x: Any) -> Any:
        found, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=axis)
        return found, inverse.ravel(), counts

    def without_indices(b: Any, x: Any) -> Any:
        found, _, inverse, counts = b.add_all(Unique, x, axis)
        return found, inverse, counts

    check(without_indices, of_torch(by_torch), values, counted=True)
    for in_order in (True, False):
        check(
            lambda b, x, s=in_order: b.add_all(Unique, x, axis, s),
            lambda x, s=in_order: unique(x, axis, s),
            values,
            counted=True,
        )


def unique(x: Array, axis: int | None, in_order: bool) -> list[Array]:
    """Compute entry by entry, with Python lists."""
    entries = x.ravel() if axis is None else np.moveaxis(x, axis, 0)
    keys = [tuple(entry.ravel().tolist()) for entry in entries]
    different = list(dict.fromkeys(keys))
    if in_order:
        different.sort()
    first = [keys.index(key) for key in different]
    values = entries[first] if axis is None else np.moveaxis(entries[first], 0, axis)
    numbers = (first, [different.index(key) for key in keys], [keys.count(k) for k in different])
    return [values, *map(np.array, numbers)]


def test_unique_by_hand(check: Checker) -> None:
    """Return values in the order of their first occurrence, as in ONNX's specification."""
    check(
        lambda b, x: b.add_all(Unique, x, sorted=False),
        lambda x: [
            np.array([2, 1, 3, 4], np.float32),
            np.array([0, 1, 3, 4]),
            np.array([0, 1, 1, 2, 3, 2]),
            np.array([1, 2, 2, 1]),
        ],
        np.array([2, 1, 1, 3, 4, 3], np.float32),
        counted=True,
    )
    check(
        lambda b, x: b.add_all(Unique, x),
        lambda x: [np.zeros(0, np.float32), *(np.zeros(0, np.int64),) * 3],
        (0, 2),
        counted=True,
    )


Function = Callable[..., Any]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int64])
def test_arg_max_and_min(check: Checker, dtype: type[np.generic], last: bool) -> None:
    rows = np.random.default_rng(9).integers(0, 4, (6, 8)).astype(dtype)
    rows[0] = rows[0, 0]

    def found(choose: Function) -> Function:
        def call(x: Array) -> Array:
            # Python's `max` and `min` give the first of equals.
            places = range(7, -1, -1) if last else range(8)
            return np.array([choose(places, key=row.__getitem__) for row in x.tolist()])

        return call

    for operator, choose in ((ArgMax, max), (ArgMin, min)):
        check(lambda b, x, o=operator: b.add(o, x, 1, False, select_last=last), found(choose), rows)
        check(
            lambda b, x, o=operator: b.add(o, x, -1, dtype=ElementType.INT32, select_last=last),
            lambda x, c=choose: found(c)(x)[:, None].astype(np.int32),
            rows,
        )


def test_extremes_where_there_is_a_nan(check: Checker) -> None:
    rows = np.array([[1, np.nan, 3, np.nan], [np.inf, 1, -np.inf, 2]], np.float32)
    check(lambda b, x: b.add(ArgMax, x, 1), of_torch(lambda x: x.argmax(1, True)), rows)
    check(lambda b, x: b.add(ArgMin, x, 1), of_torch(lambda x: x.argmin(1, True)), rows)


def by_sorting(k: int, largest: bool) -> Function:
    """Return the first `k` of each row, by Python's stable sort."""

    def places(row: list[float]) -> list[int]:
        keys = [-value if largest else value for value in row]
        return sorted(range(len(row)), key=keys.__getitem__)[:k]

    def call(x: Array) -> tuple[Array, Array]:
        indices = np.array([places(row) for row in x.tolist()], np.int64).reshape(len(x), k)
        return np.take_along_axis(x, indices, 1), indices

    return call


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int64])
def test_top_k(check: Checker, dtype: type[np.generic], largest: bool) -> None:
    rows = np.random.default_rng(10).integers(0, 5, (6, 8)).astype(dtype)
    if np.dtype(dtype).kind == "i":
        rows[0, :2] = [np.iinfo(dtype).min, np.iinfo(dtype).max]  # type: ignore[type-var]  # it is
    for k in (0, 1, 3, 8):
        check(
            lambda b, x, k=k: b.add_all(TopK, x, k, largest=largest), by_sorting(k, largest), rows
        )
    check(
        lambda b, x: b.add_all(TopK, x, 2, 0, largest=largest),
        lambda x: tuple(part.T for part in by_sorting(2, largest)(x.T)),
        rows,
    )


def test_top_k_where_there_is_a_nan(check: Checker) -> None:
    rows = np.array([[1, np.nan, 3, -np.inf, np.inf]], np.float32)
    for largest in (True, False):
        check(
            lambda b, x, largest=largest: b.add_all(TopK, x, 5, largest=largest),
            of_torch(lambda x, largest=largest: torch.topk(x, 5, largest=largest)),
            rows,
        )


def test_top_k_of_a_count_computed_at_run_time() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (1, 3)))
    k = b.input("k", TensorType(ElementType.INT64, ()))
    for name, operand in zip("vi", b.add_all(TopK, x, k), strict=True):
        assert operand.type.shape is not None
        assert [is_unknown(size) for size in operand.type.shape] == [False, True]
        b.output(name, operand)
    program = ReferenceDevice().compile(b.build(), Options())
    values, indices = program.run([np.array([[3, 1, 2]], np.float32), np.array(2)])
    assert values.tolist() == [[3, 2]]
    assert indices.tolist() == [[0, 2]]
    with pytest.raises(DeviceError, match=r"TOP_K .*k: 4 is more"):
        program.run([np.zeros((1, 3), np.float32), np.array(4)])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
@pytest.mark.parametrize(
    ("sequence", "values"),
    [((6,), (3, 4)), ((6,), ()), ((0,), (3,)), ((2, 6), (2, 5)), ((1, 6), (3, 4)), ((3, 6), (1,))],
)
def test_search_sorted(
    check: Checker, sequence: tuple[int, ...], values: tuple[int, ...], dtype: str, right: bool
) -> None:
    random = np.random.default_rng(3)
    ascending = np.sort(random.integers(0, 9, sequence), -1).astype(dtype)
    searched = random.integers(0, 9, values).astype(dtype)

    def bisect(ascending: Array, searched: Array) -> Array:
        search = np.vectorize(
            lambda row, value: (bisect_right if right else bisect_left)(row, value), otypes=[int]
        )
        rows = np.empty(ascending.shape[:-1], object)
        for index in np.ndindex(rows.shape):
            rows[index] = ascending[index].tolist()
        return np.asarray(search(rows[..., None] if rows.ndim else rows, searched), np.int64)

    check(lambda b, *xs: b.add(SearchSorted, *xs, right), bisect, ascending, searched)
    check(
        lambda b, *xs: b.add(SearchSorted, *xs, right, ElementType.INT32),
        lambda *xs: bisect(*xs).astype(np.int32),
        ascending,
        searched,
    )


BROKEN: list[tuple[Callable[[Builder, Any], Any], str]] = [
    (lambda b, x: b.add(ArgMax, x), "ARG_MAX.axis: is required"),
    (lambda b, x: b.add(ArgMax, x, -3), r"ARG_MAX.axis: -3 is not in \[-2, 2\)"),
    (lambda b, x: b.add(ArgMin, x, 0, dtype=ElementType.INT8), "ARG_MIN.dtype: int8 is neither"),
    (lambda b, x: b.add(ArgMax, np.ones((2, 0)), 1), "ARG_MAX.axis: axis 1 .* no elements"),
    (lambda b, x: b.add_all(TopK, x, 4, 0), "TOP_K.k: 4 is more than the axis' 3 elements"),
    (lambda b, x: b.add_all(TopK, x, -1), "TOP_K.k: -1 is negative"),
    (
        lambda b, x: b.add_all(TopK, x, 1, return_indices_dtype=ElementType.UINT8),
        "TOP_K.return_indices_dtype: uint8 is neither",
    ),
    (lambda b, x: b.add(SearchSorted, x, np.ones(2)), "SEARCH_SORTED.values: .*float32"),
    (lambda b, x: b.add(SearchSorted, np.float32(1), x), "SEARCH_SORTED.sorted_sequence: is a sc"),
    (lambda b, x: b.add(SearchSorted, x, np.float32(1)), "SEARCH_SORTED.values: is a scalar"),
    (
        lambda b, x: b.add(SearchSorted, x, np.ones((2, 5), np.float32)),
        r"SEARCH_SORTED.values: shapes \[3, 1\], \[2, 5\] do not broadcast",
    ),
]


@pytest.mark.parametrize(("build", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_broken_rules(build: Callable[[Builder, Any], Any], message: str) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (3, 5)))
    with pytest.raises(ModelError, match=message):
        build(b, x)
