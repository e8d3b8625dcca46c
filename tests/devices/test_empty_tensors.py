"""Tensors without elements: what operators of every family make of them, or engines decline.

Where it is about one operator alone, the test is in the file of its family in `operators`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import adds, agree, computed, integers, joined, ones, zeros

from crosschip.ir import Array
from crosschip.ops import operator_named
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN
from crosschip.ops.standard.searching import Unique

if TYPE_CHECKING:
    from tests.devices.conftest import Build, Checker

NO_ELEMENTS = "input: has no elements"


def pooled(operator: type[AveragePool2D | MaxPool2D]) -> Build:
    return lambda b, x: b.add_all(operator, x, kernel_shape=(2, 2))


def recurrent(operator: type[RNN | GRU | LSTM]) -> Build:
    gates = operator.gates
    return lambda b, x: b.add_all(operator, x, ones(1, gates * 2, 5), ones(1, gates * 2, 2))


DECLINED: dict[str, tuple[Build, tuple[int, ...], str]] = {
    "CONV_2D": (lambda b, x: b.add(Conv2D, x, ones(2, 3, 2, 2)), (0, 3, 4, 4), NO_ELEMENTS),
    "MAT_MUL": (lambda b, x: b.add(MatMul, x, ones(5, 4, 2)), (0, 1, 3, 4), "x: has no elements"),
    **{
        operator.type: (pooled(operator), (1, 0, 4, 4), NO_ELEMENTS)
        for operator in (AveragePool2D, MaxPool2D)
    },
    **{
        operator.type: (recurrent(operator), (4, 0, 5), NO_ELEMENTS)
        for operator in (RNN, GRU, LSTM)
    },
}
"""Operators, and shapes without elements of which both engines decline them."""

FITS: dict[str, tuple[Build, list[Array]]] = {
    "CONCAT": (joined(1), [zeros(2, 0), zeros(2, 3)]),
    "CONCAT of nothing": (joined(0), [zeros(0, 3), zeros(0, 3)]),
    "GROUP_NORMALIZATION of no images": (adds("GROUP_NORMALIZATION", groups=2), [zeros(0, 4, 3)]),
    "GROUP_NORMALIZATION of no pixels": (adds("GROUP_NORMALIZATION", groups=2), [zeros(2, 4, 0)]),
    "GROUP_NORMALIZATION of no channels": (adds("GROUP_NORMALIZATION", groups=1), [zeros(1, 0)]),
    "INSTANCE_NORMALIZATION": (adds("INSTANCE_NORMALIZATION"), [zeros(1, 2, 0)]),
    "LAYER_NORMALIZATION": (adds("LAYER_NORMALIZATION", np.ones((), np.float32)), [zeros(0, 2)]),
    "GATHER_ND": (adds("GATHER_ND"), [zeros(2, 0), integers([1], [-2])]),
    "GATHER_ND of no places": (adds("GATHER_ND"), [zeros(2, 3), zeros(0, 1, dtype=np.int64)]),
    "UNIQUE": (lambda b, x: b.add_all(operator_named("UNIQUE"), x), [zeros(0, 2)]),
    "UNIQUE entries": (lambda b, x: b.add_all(operator_named("UNIQUE"), x, 0), [zeros(2, 0)]),
    "MAT_MUL": (adds("MAT_MUL"), [zeros(0, 1), zeros(1)]),
    "MAT_MUL in a batch": (adds("MAT_MUL"), [zeros(2, 0, 3), zeros(3)]),
    "MAT_MUL from the left": (adds("MAT_MUL"), [zeros(3), zeros(3, 0)]),
    "MAT_MUL of vectors": (adds("MAT_MUL"), [zeros(3), zeros(3)]),
    "PAD": (computed("PAD", "pads"), [np.ones(3, np.float32), integers(-3, 2)]),
    "RESIZE_NEAREST": (computed("RESIZE_NEAREST", "shape"), [zeros(1, 1, 2, 2), integers(0, 3)]),
    "RESIZE_NEAREST by scales": (
        computed("RESIZE_NEAREST", "scales"),
        [np.ones((1, 1, 2, 2), np.float32), np.array([1.5, 2], np.float32)],
    ),
}
"""Operators, and arrays without elements, with which they make something or nothing."""

CONSTANT: dict[str, tuple[Build, list[Array]]] = {
    "ATANH": (lambda b: b.add(operator_named("ATANH"), zeros(0)), []),
    "WHERE": (
        lambda b, x: b.add(operator_named("WHERE"), np.array(True), b.constant(zeros(0)), x),
        [ones(1, 1)],
    ),
    "INSTANCE_NORMALIZATION": (
        lambda b: b.add(operator_named("INSTANCE_NORMALIZATION"), zeros(1, 0, 2)),
        [],
    ),
    "GATHER_ND": (
        lambda b, x: b.add(operator_named("GATHER_ND"), x, np.zeros((2, 0), np.int64)),
        [ones(2, 2)],
    ),
}
"""Operators of constants without elements, and what their models are given."""


@pytest.mark.parametrize("name", DECLINED)
def test_declined(check: Checker, name: str) -> None:
    build, shape, why = DECLINED[name]
    check.declines(build, shape, why=why)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
def test_declined_by_onnxruntime(check: Checker) -> None:
    check.declines(adds("ARG_MAX", 0, keepdim=False), (2, 0), why=NO_ELEMENTS)
    check.declines(adds("GROUP_NORMALIZATION", groups=2), (0, 4, 3), why=NO_ELEMENTS)


@pytest.mark.parametrize("device", ["openvino"], indirect=True)
def test_declined_by_openvino(check: Checker) -> None:
    """OpenVINO would crash or return arbitrary elements."""
    nothing = zeros(0, 3)
    check.declines(adds("FLATTEN", 0), nothing, why="FLATTEN.input: is empty")
    check.declines(adds("EXPAND", (2, 1, 1)), nothing, why="is empty")
    check.declines(adds("GATHER", integers(1), 1), nothing, why="is empty")
    check.declines(lambda b, x: b.add_all(Unique, x), nothing, why="UNIQUE.input")
    check.declines(
        lambda b, x: b.add_all(Unique, x), (2, 3), typing=check.symbolic, why="UNIQUE.input"
    )
    check.declines(adds("RESIZE_NEAREST", shape=(4, 4)), (0, 1, 2, 2), why=NO_ELEMENTS)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_what_fits(check: Checker, name: str, dtype: Any) -> None:
    build, arrays = FITS[name]
    given = [x.astype(dtype) if x.dtype == np.float32 else x for x in arrays]
    for typing in (check.static, check.symbolic):
        agree(check, build, given, typing)

    def behind(b: Any, *xs: Any) -> Any:
        """Return the same model on a tensor that the engine computes."""
        return build(b, b.add(operator_named("NEG"), xs[0]), *xs[1:])

    agree(check, behind, given, check.symbolic)


@pytest.mark.parametrize("name", CONSTANT)
def test_constants_without_elements(check: Checker, name: str) -> None:
    build, arrays = CONSTANT[name]
    agree(check, build, arrays, check.static)


def test_outputs_without_elements(check: Checker) -> None:
    number = np.array(2, np.float32)
    agree(check, adds("SHAPE"), [number], check.static)
    agree(check, adds("ONE_HOT", 0, number, number), [np.array(0, np.int32)], check.static)
    agree(check, adds("PAD", [-1, -1]), [np.ones(2, np.float32)], check.static)
    agree(
        check,
        adds("WHERE"),
        [np.array(True), np.zeros(0, np.float32), np.ones((1, 1), np.float32)],
        check.static,
    )
