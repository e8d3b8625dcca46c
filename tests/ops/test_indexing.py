"""Reading and writing at places, and finding elements, against PyTorch and ONNX's evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.sparse import coo_array
from tests.ops.oracle import functional, of_onnx, of_torch, torch

from crosschip.ir import Array
from crosschip.ops.standard.creation import OneHot
from crosschip.ops.standard.indexing import (
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
    SparseToDense,
)
from crosschip.ops.standard.searching import NonZero, Unique

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

REDUCTIONS = {Scatter.ADD: "sum", Scatter.MUL: "prod", Scatter.MAX: "amax", Scatter.MIN: "amin"}


PLACES = [
    ((3, 4), [[0, 1], [2, -1]], 0),
    ((3, 4), [[[-3]], [[1]]], 0),
    ((3, 4, 2), [[0, 1, 1]], 0),
    ((2, 3, 4), [[[2], [0]], [[1], [-1]]], 1),
    ((2, 2, 3), [[[1], [0]], [[2], [-3]]], 2),
    ((3, 4), np.zeros((0, 2), np.int64), 0),
]


@pytest.mark.parametrize(("shape", "places", "batch"), PLACES)
def test_gather_nd(check: Checker, shape: tuple[int, ...], places: Any, batch: int) -> None:
    indices = np.array(places)
    check(
        lambda b, x: b.add(GatherND, x, indices, batch),
        lambda x: of_onnx("GatherND", batch_dims=batch)(x, indices),
        shape,
    )


def test_gather_nd_by_hand(check: Checker) -> None:
    check(
        lambda b, x: b.add(GatherND, x, np.array([[1, 2], [0, -1]], np.int32)),
        lambda x: np.stack([x[1, 2], x[0, -1]]),
        (3, 4, 2),
    )


def test_gather_elements(check: Checker) -> None:
    for axis, shape in ((0, (5, 4)), (1, (3, 6)), (-1, (2, 2))):
        indices = np.random.default_rng(0).integers(0, 3, shape)
        check(
            lambda b, x, i, axis=axis: b.add(GatherElements, x, i, axis),
            of_torch(lambda x, i, axis=axis: torch.gather(x, axis, i)),
            *((3, 4), indices),
        )
    check(
        lambda b, x, i: b.add(GatherElements, x, i, 1),
        lambda x, i: np.array([[x[0, -1], x[0, 0]]]),
        *((3, 4), np.array([[-1, -4]], np.int32)),
    )


def test_scatter_elements(check: Checker) -> None:
    indices = np.array([[0, 2, 1], [2, 0, 2]])
    for axis in (0, 1, -2):
        check(
            lambda b, x, i, u, axis=axis: b.add(ScatterElements, x, i, u, axis),
            of_torch(lambda x, i, u, axis=axis: torch.scatter(x, axis, i, u)),
            *((3, 4), np.array([[0, 2, 1]]), (1, 3)),
        )
        for reduction, name in REDUCTIONS.items():
            check(
                lambda b, x, i, u, axis=axis, r=reduction: b.add(ScatterElements, x, i, u, axis, r),
                of_torch(
                    lambda x, i, u, axis=axis, name=name: torch.scatter_reduce(x, axis, i, u, name)
                ),
                *((3, 4), indices, (2, 3)),
            )


def test_scatter_nd(check: Checker) -> None:
    indices = np.array([[2], [0], [2]])
    for reduction, name in REDUCTIONS.items():
        check(
            lambda b, x, i, u, r=reduction: b.add(ScatterND, x, i, u, r),
            of_torch(
                lambda x, i, u, name=name: torch.scatter_reduce(x, 0, i.expand(-1, 2), u, name)
            ),
            *((4, 2), indices, (3, 2)),
        )
    for shape, places, updates in (
        ((4, 3), [[[0, 1]], [[3, -1]]], (2, 1)),
        ((4, 3, 2), [[1], [-1]], (2, 3, 2)),
        ((4,), np.zeros((0, 1), np.int64), (0,)),
    ):
        check(
            lambda b, x, i, u: b.add(ScatterND, x, i, u),
            of_onnx("ScatterND"),
            *(shape, np.array(places), updates),
        )


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_updates_of_the_whole_tensor(check: Checker, shape: tuple[int, ...]) -> None:
    """A place without indices is all of it."""
    places = np.zeros((1, 0), np.int64)
    replaced = np.arange(6, dtype=np.float32)[: int(np.prod(shape))].reshape(shape)
    check(
        lambda b, x, i, u: b.add(ScatterND, x, i, u),
        lambda x, i, u: u[0],
        *(shape, places, replaced[None]),
    )
    twice = np.stack([replaced, replaced + 1])
    check(
        lambda b, x, i, u: b.add(ScatterND, x, i, u, Scatter.ADD),
        lambda x, i, u: x + u.sum(axis=0),
        *(shape, np.zeros((2, 0), np.int64), twice),
    )


def test_updates_of_integers_wrap_around(check: Checker) -> None:
    check(
        lambda b, x, i, u: b.add(ScatterND, x, i, u, Scatter.ADD),
        lambda x, i, u: np.array([-126, 5], np.int8),
        *(np.array([127, 5], np.int8), np.array([[0], [0]]), np.array([1, 2], np.int8)),
    )


def test_sparse_to_dense(check: Checker) -> None:
    check(
        lambda b, i, v: b.add(SparseToDense, i, v, (3, 4)),
        lambda i, v: coo_array((v, tuple(i.T)), (3, 4)).toarray(),
        *(np.array([[0, 1], [2, 3], [1, 1]]), (3,)),
    )
    check(
        lambda b, i, v: b.add(SparseToDense, i, v, (4,), np.float32(-1)),
        lambda i, v: np.array([-1, v[1], -1, v[0]], np.float32),
        *(np.array([[-1], [1]], np.int32), (2,)),
    )
    check(
        lambda b, i, v: b.add(SparseToDense, i, v, ()),
        lambda i, v: v[0],
        *(np.zeros((1, 0), np.int32), (1,)),
    )


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
    """Entry by entry, with Python's lists."""
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
    """Values in the order of their first occurrence, as ONNX's specification tells it."""
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


def test_one_hot(check: Checker) -> None:
    indices = np.array([[0, 2], [3, 1]])
    check(
        lambda b, i: b.add(OneHot, i, 5, np.int64(1), np.int64(0)),
        of_torch(lambda i: functional.one_hot(i, 5)),
        indices,
    )
    for axis in (0, 1, -1, -3):
        for of in (indices, np.array([[-1, -4], [3, -2]])):

            def with_values(i: Array, axis: int = axis) -> Array:
                values = np.array([0.5, 7], np.float32)
                hot: Array = of_onnx("OneHot", axis=axis)(i, np.array(4), values)[0]
                return hot

            check(
                lambda b, i, axis=axis: b.add(OneHot, i, 4, np.float32(7), np.float32(0.5), axis),
                with_values,
                of,
            )


def test_indices_of_nothing_hot(check: Checker) -> None:
    """ONNX's evaluator wraps indices around, where its specification has nothing hot."""
    check(
        lambda b, i: b.add(OneHot, i, 3, np.bool_(True), np.bool_(False)),
        lambda i: np.array([[0, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]], np.bool_),
        np.array([3, -4, -3, 2]),
    )
    check(
        lambda b, i: b.add(OneHot, i, 3, np.int8(1), np.int8(-1)),
        lambda i: np.array([[-1, 1, -1], [1, -1, -1], [-1, -1, 1]], np.int8),
        np.array([1.9, -0.9, -1.5], np.float32),
    )
    check(
        lambda b, i: b.add(OneHot, i, 0, np.bool_(True), np.bool_(False)),
        lambda i: np.zeros((2, 0), np.bool_),
        np.array([0, 1]),
    )
