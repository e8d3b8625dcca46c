"""Recurrent networks on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.devices.checks import agree, ones, values_like, zeros

from crosschip.ir import Builder, DeviceError
from crosschip.ops import operator_named
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

CELLS = {"RNN": (RNN, 1), "GRU": (GRU, 3), "LSTM": (LSTM, 4)}


def cell(b: Builder, x: Any, name: str, passes: int = 1, **more: Any) -> Any:
    """Return a layer of 3 hidden units on 5 inputs, with a bias."""
    operator, gates = CELLS[name]
    tensors = values_like(x, passes, gates * 3, 5), values_like(x, passes, gates * 3, 3)
    return b.add_all(operator, x, *tensors, values_like(x, passes, gates * 6), **more)


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
    check(build, (4, 2, 5), start, lengths, rankless_too=False)


def test_gru_with_the_reset_after_the_product(check: Checker) -> None:
    check(lambda b, x: cell(b, x, "GRU", linear_before_reset=True), (4, 2, 5), rankless_too=False)


@pytest.mark.parametrize("name", CELLS)
def test_clipping(check: Checker, name: str) -> None:
    def build(b: Builder, x: Any) -> Any:
        return cell(b, x, name, clip=0.25)

    if check.device.name == "onnxruntime" and name == "LSTM":
        check.declines(build, (4, 2, 5), why="clip: must be left out")
    else:
        check(build, 3 * np.ones((4, 2, 5), np.float32), rankless_too=False)


@pytest.mark.parametrize("function", CellFunction, ids=lambda f: f.name)
def test_cell_functions(check: Checker, function: CellFunction) -> None:
    alone: dict[str, Any] = {"activations": [function]}
    given = {**alone, "activation_alpha": [0.75], "activation_beta": [0.25]}
    for more in (alone, given):

        def build(b: Builder, x: Any, more: dict[str, Any] = more) -> Any:
            return cell(b, x, "RNN", **more)

        if check.device.name == "onnxruntime" and function is CellFunction.SOFTPLUS:
            check.declines(build, (4, 2, 5), why="activations: SOFTPLUS overflows")
        else:
            check(build, (4, 2, 5), rankless_too=False)


def test_peepholes_and_coupled_gates(check: Checker) -> None:
    def peeping(b: Builder, x: Any) -> Any:
        return cell(b, x, "LSTM", peephole=values_like(x, 1, 9))

    def coupled(b: Builder, x: Any) -> Any:
        return cell(b, x, "LSTM", input_forget=True)

    check(peeping, (4, 2, 5), rankless_too=False)
    check(coupled, (4, 2, 5), rankless_too=False)


@pytest.mark.parametrize("name", CELLS)
def test_a_constant_state_and_an_open_batch(check: Checker, name: str) -> None:
    _, gates = CELLS[name]
    weight, recurrence = (np.full((1, 2 * gates, n), 0.1, np.float32) for n in (3, 2))
    state = np.full((1, 1, 2), 0.5, np.float32)

    def build(b: Builder, x: Any) -> Any:
        constants = [b.constant(array) for array in (weight, recurrence, state)]
        names = ("weight", "recurrence_weight", "initial_hidden")
        named: dict[str, Any] = dict(zip(names, constants, strict=True))
        return b.add_all(operator_named(name), x, **named)[0]

    agree(check, build, [np.ones((2, 1, 3), np.float32)], check.symbolic)


@pytest.mark.parametrize("operator", [RNN, GRU, LSTM], ids=lambda operator: operator.type)
@pytest.mark.parametrize("given", [False, True])
def test_an_empty_batch_does_no_harm(
    check: Checker, operator: type[RNN | GRU | LSTM], given: bool
) -> None:
    """An engine returns an empty result or refuses, if the batch is dynamic."""

    def build(b: Builder, x: Any, *lengths: Any) -> Any:
        named = {"sequence_lengths": lengths[0]} if lengths else {}
        gates = operator.gates
        return b.add_all(operator, x, ones(1, gates * 2, 5), ones(1, gates * 2, 2), **named)

    arrays = [ones(4, 0, 5), *([np.zeros(0, np.int64)] if given else [])]
    if check.device.name == "openvino" or operator is RNN:
        first, *_ = check.outputs_of(
            check.device, check.built(build, arrays, check.symbolic), arrays
        )
        assert first.shape == (4, 1, 0, 2)
    else:
        model = check.built(build, arrays, check.symbolic)
        with pytest.raises(DeviceError, match="failed while running"):
            check.outputs_of(check.device, model, arrays)


@pytest.mark.parametrize("device", ["onnxruntime"], indirect=True)
@pytest.mark.parametrize("name", CELLS)
def test_sequences_of_no_numbers(check: Checker, name: str) -> None:
    _, gates = CELLS[name]
    arrays = [zeros(2, 1, 0), zeros(1, gates * 3, 0)]

    def build(b: Any, x: Any, w: Any) -> Any:
        recurrence = np.ones((1, gates * 3, 3), np.float32)
        return b.add_all(operator_named(name), x, w, recurrence)

    agree(check, build, arrays, check.static)
    check.declines(build, *arrays, why="its last size must be known", typing=check.symbolic)
