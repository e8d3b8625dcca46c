"""Gathering and scattering, compared with PyTorch and ONNX's evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.sparse import coo_array
from tests.ops.oracle import of_onnx, of_torch, torch

from crosschip.ops.standard.indexing import (
    Gather,
    GatherElements,
    GatherND,
    Scatter,
    ScatterElements,
    ScatterND,
    SparseToDense,
)

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
    """An index tuple of length 0 selects the whole tensor."""
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


SHAPE = (2, 3, 4)


def test_gather(check: Checker) -> None:
    for axis in (0, 1, -1):
        for indices in (np.array([1, 0, -1]), np.array([[0, 1], [1, -2]]), np.array(1)):
            check(
                lambda b, x, i, axis=axis: b.add(Gather, x, i, axis),
                lambda x, i, axis=axis: x[(slice(None),) * (axis % 3) + (i,)],
                *(SHAPE, indices),
            )


def test_gather_of_nothing(check: Checker) -> None:
    check(
        lambda b, x: b.add(Gather, x, np.zeros((2, 0), np.int64), 1),
        lambda x: np.zeros((2, 2, 0, 4), np.float32),
        SHAPE,
    )
