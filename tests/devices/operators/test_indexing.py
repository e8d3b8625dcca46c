"""Gather and scatter on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import (
    TABLE,
    Example,
    adds,
    agree,
    assert_refused,
    claimed_example,
    integers,
    number,
    zeros,
)

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, DeviceError, ElementType
from crosschip.ops import operator_named
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
    from tests.devices.conftest import Build, Checker

IMAGE, MATRIX, VECTOR = (1, 2, 6, 5), (3, 4), (7,)
CLAIMS: dict[str, Example] = {
    "GATHER": (lambda b, x: b.add(Gather, x, b.constant(integers(1, -1)), 2), (IMAGE,)),
    "lists GATHER": (lambda b, x: b.add(Gather, x, b.constant(np.array(2))), (VECTOR,)),
    "GATHER_ND": (lambda b, x: b.add(GatherND, x, integers([0, 1], [2, -1])), (MATRIX,)),
    "GATHER_ND rows": (lambda b, x: b.add(GatherND, x, integers([[2]], [[0]])), (MATRIX,)),
    "lists GATHER_ND": (lambda b, x: b.add(GatherND, x, integers([3], [-1])), ((5,),)),
    "GATHER_ELEMENTS": (
        lambda b, x: b.add(GatherElements, x, integers([0, 3], [1, -1], [2, 2]), 1),
        (MATRIX,),
    ),
    "SCATTER_ELEMENTS": (
        lambda b, x, y: b.add(ScatterElements, x, integers([0, 3], [1, -1]), y, 1),
        (MATRIX, (2, 2)),
    ),
    **{
        f"SCATTER_ND {how.name}": (
            lambda b, x, y, how=how: b.add(ScatterND, x, integers([0], [-1]), y, how),
            (MATRIX, (2, 4)),
        )
        for how in Scatter
    },
    **{
        f"SCATTER_ELEMENTS {how.name}": (
            lambda b, x, y, how=how: b.add(ScatterElements, x, integers([0, 0]), y, 1, how),
            (MATRIX, (1, 2)),
        )
        for how in (Scatter.ADD, Scatter.MUL, Scatter.MAX, Scatter.MIN)
    },
    "SPARSE_TO_DENSE": (
        lambda b, x: b.add(SparseToDense, b.constant(integers([0, 1], [2, 0])), x, (3, 2)),
        ((2,),),
    ),
    "lists SCATTER_ND": (lambda b, x, y: b.add(ScatterND, x, integers([3], [-1]), y), ((5,), (2,))),
}
DECOMPOSED = {"SPARSE_TO_DENSE"}
"""The examples that both engines leave to others."""

INDEXED: dict[str, tuple[Build, list[Array]]] = {
    "GATHER": (adds("GATHER", 0), [TABLE, integers(0, 9)]),
    "GATHER_ND": (adds("GATHER_ND"), [TABLE, integers([0, 9])]),
    "GATHER_ELEMENTS": (adds("GATHER_ELEMENTS", 0), [TABLE, integers([0, 9, 0, 0])]),
    "SCATTER_ND": (adds("SCATTER_ND"), [TABLE, integers([0, 9]), np.ones(1, np.float32)]),
    "SCATTER_ELEMENTS": (
        adds("SCATTER_ELEMENTS", 0),
        [TABLE, integers([0, 9, 0, 0]), np.ones((1, 4), np.float32)],
    ),
}
"""Operators that read indices; in the arrays, 9 is out of range."""


def test_gather(check: Checker) -> None:
    for axis in (0, 1, -1):
        for indices in (integers(1, 0, -1), np.array([[0, 1], [1, -2]]), np.array(1, np.int32)):
            check(
                lambda b, x, i=indices, axis=axis: b.add(Gather, x, b.constant(i), axis), (2, 3, 4)
            )
    check(lambda b, x, i: b.add(Gather, x, i, 1), (2, 3), np.array([[2, 0], [-1, 1]]))


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    claims = claimed_example(check, CLAIMS[name])
    assert (ElementType.FLOAT32 in claims) == (name not in DECOMPOSED)


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("index", [3, -5, 10**6])
@pytest.mark.parametrize("typing", ["static", "symbolic"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_indices_out_of_range(
    check: Checker, name: str, index: int, typing: str, dtype: Any
) -> None:
    build, arrays = INDEXED[name]
    wrong = np.where(arrays[1] == 9, 4 if index == 3 else index, arrays[1]).astype(dtype)
    arrays = [arrays[0], wrong, *arrays[2:]]
    assert_refused(check, build, arrays, getattr(check, typing))
    # Computed in the model, and known in advance.
    one = np.array(1, dtype)
    multiplied = [*arrays, one]
    assert_refused(
        check,
        lambda b, x, i, *u: build(b, x, b.add(operator_named("MUL"), i, u[-1]), *u[:-1]),
        multiplied,
        getattr(check, typing),
    )
    others = [arrays[0], *arrays[2:]]
    assert_refused(
        check, lambda b, x, *u: build(b, x, b.constant(wrong), *u), others, getattr(check, typing)
    )


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("typing", ["static", "symbolic"])
def test_indices_in_range(check: Checker, name: str, typing: str) -> None:
    build, arrays = INDEXED[name]
    right = [arrays[0], np.where(arrays[1] == 9, -2, arrays[1]), *arrays[2:]]
    model = check.built(build, right, getattr(check, typing))
    if all(check.device.supports(o, Options()) for o in model.operations):
        expected = check.outputs_of(ReferenceDevice(), model, right)
        check.compare(model, right, expected, 0)
        program = check.device.compile(model, Options())
        saved = program.save()
        assert saved is not None
        again = check.device.load(saved, model, Options())
        np.testing.assert_array_equal(again.run(right)[0], expected[0])
        wrong = [arrays[0], np.where(arrays[1] == 9, 100, arrays[1]), *arrays[2:]]
        with pytest.raises(DeviceError, match=check.device.name):
            again.run(wrong)
        np.testing.assert_array_equal(again.run(right)[0], expected[0])


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
@pytest.mark.parametrize("index", [0, -1, 1])
@pytest.mark.parametrize("name", ["GATHER", "GATHER_ND", "SCATTER_ND", "SCATTER_ELEMENTS"])
def test_no_index_into_nothing(check: Checker, name: str, index: int) -> None:
    shape = {"GATHER": (1,), "SCATTER_ELEMENTS": (1, 4)}.get(name, (1, 1))
    arrays: list[Array] = [np.zeros((0, 4), np.float32), np.full(shape, index, np.int64)]
    arrays += [np.ones((1, 4), np.float32)] if "SCATTER" in name else []
    more = (0,) if name in ("GATHER", "SCATTER_ELEMENTS") else ()
    assert_refused(check, adds(name, *more), arrays, check.symbolic)


@pytest.mark.parametrize("shape", [(1, 0), (0, 1), (0, 0)])
@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_places_in_nothing(check: Checker, shape: tuple[int, ...]) -> None:
    arrays = [np.zeros(shape, np.float32), np.zeros(2, np.int32)]
    model = check.built(lambda b, x, indices: b.add(GatherND, x, indices), arrays)
    with pytest.raises(DeviceError, match="indices: one is out of range"):
        check.outputs_of(check.device, model, arrays)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_updates_of_one_number(check: Checker) -> None:
    arrays = [number(1), zeros(0, dtype=np.int64), number(2)]
    agree(check, adds("SCATTER_ND"), arrays, check.static)
