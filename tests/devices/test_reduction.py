"""Reductions, normalizations and recurrent networks: what an engine claims, it computes right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.test_types import COMPUTED, TOLERANCES, values, weights

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, ModelError, Operand
from crosschip.ir.types import FLOATS
from crosschip.ops import operator_named
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.matrix import Det
from crosschip.ops.standard.normalization import (
    LRN,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
)
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction
from crosschip.ops.standard.reduction import CumSum
from crosschip.ops.standard.searching import ArgMax, ArgMin, TopK

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

SHAPE, VECTOR = (2, 3, 4), (7,)
INT32 = ElementType.INT32

_NAMES = """
    REDUCE_SUM REDUCE_MEAN REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_L1 REDUCE_L2
    REDUCE_SUM_SQUARE REDUCE_LOG_SUM REDUCE_LOG_SUM_EXP REDUCE_ALL REDUCE_ANY
"""
REDUCTIONS = _NAMES.split()

Build = Callable[..., Operand | tuple[Operand, ...]]


def reduction(name: str, axes: tuple[int, ...], keepdim: bool) -> Build:
    return lambda b, x: b.add(operator_named(name), x, axes, keepdim)


CLAIMS: dict[str, tuple[tuple[int, ...], Build]] = {
    **{f"{name} one": (SHAPE, reduction(name, (1,), True)) for name in REDUCTIONS},
    **{f"{name} two": (SHAPE, reduction(name, (-1, 0), False)) for name in REDUCTIONS},
    **{f"{name} all": (SHAPE, reduction(name, (), False)) for name in REDUCTIONS},
    **{f"{name} list": (VECTOR, reduction(name, (0,), True)) for name in REDUCTIONS},
    "ARG_MAX": (SHAPE, lambda b, x: b.add(ArgMax, x, -1)),
    "ARG_MAX removed": (SHAPE, lambda b, x: b.add(ArgMax, x, 1, False, INT32)),
    "ARG_MAX last": (SHAPE, lambda b, x: b.add(ArgMax, x, 0, select_last=True)),
    "ARG_MIN": (SHAPE, lambda b, x: b.add(ArgMin, x, -2, False)),
    "TOP_K": (SHAPE, lambda b, x: b.add_all(TopK, x, 2)),
    "TOP_K least": (
        SHAPE,
        lambda b, x: b.add_all(TopK, x, 2, 0, False, return_indices_dtype=INT32),
    ),
    "TOP_K list": (VECTOR, lambda b, x: b.add_all(TopK, x, 5)),
    "CUM_SUM": (SHAPE, lambda b, x: b.add(CumSum, x, 1)),
    "CUM_SUM backwards": (SHAPE, lambda b, x: b.add(CumSum, x, -1, True, True)),
    "CUM_SUM list": (VECTOR, lambda b, x: b.add(CumSum, x, 0)),
    "INSTANCE_NORMALIZATION": (
        (2, 3, 8),
        lambda b, x: b.add(InstanceNormalization, x, weights(x, 3), weights(x, 3)),
    ),
    "GROUP_NORMALIZATION": (
        (2, 4, 8),
        lambda b, x: b.add(GroupNormalization, x, weights(x, 4), weights(x, 4), groups=2),
    ),
    "LAYER_NORMALIZATION": (
        (2, 3, 8),
        lambda b, x: b.add(LayerNormalization, x, weights(x, 3, 1), begin_norm_axis=1),
    ),
    "LRN": ((1, 6, 2, 3), lambda b, x: b.add(LRN, x, 3, alpha=0.5)),
    "DET": ((2, 4, 4), lambda b, x: b.add(Det, x)),
}

DECOMPOSED = {
    "onnxruntime": {"REDUCE_ALL", "REDUCE_ANY"},
    "openvino": {
        *("REDUCE_SUM_SQUARE", "REDUCE_LOG_SUM", "REDUCE_LOG_SUM_EXP", "DET"),
        "ARG_MAX last",
    },
}
"""The operators that engines leave to others."""


def numbers(element_type: ElementType, shape: tuple[int, ...], name: str, device: str) -> Array:
    """Random elements, such that logarithms exist, with ties where places are looked for."""
    found = values(element_type, shape)
    if element_type in FLOATS:
        if "LOG_SUM" in name:
            return np.abs(found) + np.ones((), found.dtype)
        if name.startswith(("ARG", "TOP")):
            return np.round(found)
    if device == "openvino" and element_type is ElementType.INT64:
        return found % 30
    return found % 30 if element_type is ElementType.INT64 and "REDUCE_PROD" in name else found


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    shape, build = CLAIMS[name]
    claimed = set()
    for element_type in COMPUTED:
        arrays = [numbers(element_type, shape, name, check.device.name)]
        try:
            model = check.built(build, arrays)
        except ModelError:
            continue
        if check.device.supports(model.operations[0], Options()):
            expected = check.outputs_of(ReferenceDevice(), model, arrays)
            check.compare(model, arrays, expected, TOLERANCES.get(element_type, 0))
            claimed.add(element_type)
    left = DECOMPOSED[check.device.name]
    assert bool(claimed) == (name not in left and name.split()[0] not in left)


@pytest.mark.parametrize("keepdim", [True, False])
def test_sizes_known_only_at_run_time(check: Checker, keepdim: bool) -> None:
    for axes in ((1,), (0, -1)):
        check(reduction("REDUCE_SUM", axes, keepdim), (2, 3, 4))
        check(reduction("REDUCE_MAX", axes, keepdim), (2, 3, 4))
    check(lambda b, x: b.add(ArgMax, x, 1, keepdim), (2, 3, 4))
    check(lambda b, x: b.add_all(TopK, x, 2, 1), (2, 3, 4))
    check(lambda b, x: b.add(CumSum, x, 1), (2, 3, 4))


def test_a_count_known_only_at_run_time(check: Checker) -> None:
    check(lambda b, x, k: b.add_all(TopK, x, k), (3, 5), np.array([2]), rankless_too=False)


def test_integers_that_do_not_fit_into_a_float(check: Checker) -> None:
    wide = np.array([[2**53, 1, 1], [2**62, 2**62, 5]])
    if check.device.name == "onnxruntime":
        check(reduction("REDUCE_SUM", (1,), False), wide, rankless_too=False)
        check.declines(reduction("REDUCE_PROD", (1,), False), wide, why="lists of sizes only")
        check.declines(
            reduction("REDUCE_SUM", (1,), True), wide[:, :0], why="no elements on axis 1"
        )
    else:
        check.declines(reduction("REDUCE_SUM", (1,), True), wide, why="int64 is not supported")
        check.declines(reduction("REDUCE_PROD", (1,), True), wide, why="for sizes of shapes only")


def test_no_elements(check: Checker) -> None:
    for name in ("REDUCE_SUM", "REDUCE_PROD"):
        check(reduction(name, (1,), True), (2, 0), rankless_too=False)
    own = {"onnxruntime": {"REDUCE_MEAN"}, "openvino": {"REDUCE_MEAN", "REDUCE_MAX", "REDUCE_MIN"}}
    for name in ("REDUCE_MEAN", "REDUCE_MAX", "REDUCE_MIN"):
        if name in own[check.device.name]:
            check.declines(reduction(name, (-1,), True), (2, 0), why="no elements on axis -1")
        else:
            check(reduction(name, (-1,), True), (2, 0), rankless_too=False)


CELLS = {"RNN": (RNN, 1), "GRU": (GRU, 3), "LSTM": (LSTM, 4)}


def cell(b: Builder, x: Any, name: str, passes: int = 1, **more: Any) -> Any:
    """A layer of 3 hidden values on 5 inputs, with a bias."""
    operator, gates = CELLS[name]
    tensors = weights(x, passes, gates * 3, 5), weights(x, passes, gates * 3, 3)
    return b.add_all(operator, x, *tensors, weights(x, passes, gates * 6), **more)


@pytest.mark.parametrize("direction", Direction, ids=lambda d: d.name)
@pytest.mark.parametrize("name", CELLS)
def test_cells(check: Checker, name: str, direction: Direction) -> None:
    passes = len(direction.passes)

    def build(b: Builder, x: Any, *more: Any) -> Any:
        slots = ("initial_hidden", "sequence_lengths") if len(more) == 2 else ("initial_hidden",)
        given = dict(zip(slots, more, strict=False))
        return cell(b, x, name, passes, direction=direction, **given)

    start, lengths = (passes, 2, 3), np.array([4, 2], np.int32)
    check(build, (4, 2, 5), rankless_too=False)
    check(build, (4, 2, 5), start, rankless_too=False)
    if check.device.name == "onnxruntime":
        check(build, (4, 2, 5), start, lengths, rankless_too=False)
    else:
        check.declines(build, (4, 2, 5), start, lengths, why="sequence_lengths: must be left out")


def test_gru_with_the_reset_after_the_product(check: Checker) -> None:
    check(lambda b, x: cell(b, x, "GRU", linear_before_reset=True), (4, 2, 5), rankless_too=False)


@pytest.mark.parametrize("name", CELLS)
def test_clipping(check: Checker, name: str) -> None:
    def build(b: Builder, x: Any) -> Any:
        return cell(b, x, name, clip=0.25)

    if check.device.name == "onnxruntime" and name != "LSTM":
        check(build, 3 * np.ones((4, 2, 5), np.float32), rankless_too=False)
    else:
        check.declines(build, (4, 2, 5), why="clip: must be left out")


@pytest.mark.parametrize("function", CellFunction, ids=lambda f: f.name)
def test_cell_functions(check: Checker, function: CellFunction) -> None:
    alone: dict[str, Any] = {"activations": [function]}
    given = {**alone, "activation_alpha": [0.75], "activation_beta": [0.25]}
    for more in (alone, given):

        def build(b: Builder, x: Any, more: dict[str, Any] = more) -> Any:
            return cell(b, x, "RNN", **more)

        if check.device.name != "onnxruntime":
            check.declines(build, (4, 2, 5), why="activations: must be left out")
        elif function is CellFunction.SOFTPLUS:
            check.declines(build, (4, 2, 5), why="activations: SOFTPLUS overflows")
        else:
            check(build, (4, 2, 5), rankless_too=False)


def test_peepholes_and_coupled_gates(check: Checker) -> None:
    def peeping(b: Builder, x: Any) -> Any:
        return cell(b, x, "LSTM", peephole=weights(x, 1, 9))

    def coupled(b: Builder, x: Any) -> Any:
        return cell(b, x, "LSTM", input_forget=True)

    if check.device.name == "onnxruntime":
        check(peeping, (4, 2, 5), rankless_too=False)
        check(coupled, (4, 2, 5), rankless_too=False)
    else:
        check.declines(peeping, (4, 2, 5), why="peephole: must be left out")
        check.declines(coupled, (4, 2, 5), why="input_forget: must be false")


def test_windows_of_an_even_size(check: Checker) -> None:
    check.declines(lambda b, x: b.add(LRN, x, 4), (1, 6, 2, 3), why="size: 4 is even")
    if check.device.name == "onnxruntime":
        check.declines(lambda b, x: b.add(LRN, x, 3), (1, 6, 2), why="must have 4 axes")
    else:
        check(lambda b, x: b.add(LRN, x, 3), (1, 6, 2))


def test_scales_that_broadcast(check: Checker) -> None:
    for shape in ((1,), (5,), (3, 1), (2, 1, 5)):
        scale = np.random.default_rng(5).normal(size=shape).astype(np.float32)
        check(lambda b, x, w=scale: b.add(LayerNormalization, x, w, w), (2, 3, 5))


def test_statistics_of_another_type(check: Checker) -> None:
    x, w = np.zeros((2, 3, 4), np.float16), np.ones(3, np.float32)
    for operator in (InstanceNormalization, GroupNormalization):
        more = {} if operator is InstanceNormalization else {"groups": 3}
        check.declines(
            lambda b, x, o=operator, more=more: b.add(o, x, w, w, **more),
            x,
            why="scale: must be float16",
        )
