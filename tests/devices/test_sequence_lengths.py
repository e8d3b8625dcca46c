"""Recurrent layers with sequence lengths on OpenVINO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import crosschip
from crosschip.ir import Builder, DeviceError, Dim, ElementType, Model, Shape, TensorType, symbol
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction, Recurrent

STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 6
T = symbol("T")
GATES = {RNN: 1, GRU: 3, LSTM: 4}


def layer(
    kind: type[Recurrent],
    direction: Direction,
    steps: Dim = STEPS,
    states: Mapping[str, Shape] | None = None,
    **more: Any,
) -> Model:
    random = np.random.default_rng(0)
    passes, rows = len(direction.passes), GATES[kind] * HIDDEN
    shapes = (passes, rows, WIDTH), (passes, rows, HIDDEN), (passes, 2 * rows)
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (steps, BATCH, WIDTH)))
    lengths = b.input("lengths", TensorType(ElementType.INT32, (BATCH,)))
    weights = [b.constant(random.standard_normal(shape).astype(np.float32)) for shape in shapes]
    for name, shape in (states or {}).items():
        more[name] = b.input(name, TensorType(ElementType.FLOAT32, shape))
    made = b.add_all(kind, x, *weights, sequence_lengths=lengths, direction=direction, **more)
    for index, output in enumerate(made):
        b.output(f"y{index}", output)
    return b.build()


@pytest.mark.parametrize("direction", Direction, ids=lambda direction: direction.name)
@pytest.mark.parametrize("kind", GATES, ids=lambda kind: kind.__name__)
def test_openvino_ends_each_sequence_where_it_ends(
    kind: type[Recurrent], direction: Direction
) -> None:
    model = layer(kind, direction)
    x = np.random.default_rng(1).standard_normal((STEPS, BATCH, WIDTH)).astype(np.float32)
    with (
        crosschip.compile(model, ["openvino"], cache=False) as compiled,
        crosschip.compile(model, ["reference"], cache=False) as reference,
    ):
        assert [decision.type for decision in compiled.placement.decisions] == [kind.type]
        for lengths in ([5, 5, 5], [1, 3, 5], [0, 2, 4], [0, 0, 0]):
            given = {"x": x, "lengths": np.array(lengths, np.int32)}
            expected = reference.run(given)
            for name, array in compiled.run(given).items():
                np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)
        for wrong in ([6, 1, 1], [1, -1, 1]):
            with pytest.raises(DeviceError, match="sequence_lengths"):
                compiled.run({"x": x, "lengths": np.array(wrong, np.int32)})


@pytest.mark.parametrize("steps", [STEPS, 1, T], ids=["fixed", "one", "open"])
@pytest.mark.parametrize("kind", GATES, ids=lambda kind: kind.__name__)
def test_openvino_keeps_the_states_of_a_sequence_without_steps(
    kind: type[Recurrent], steps: Dim
) -> None:
    states = dict.fromkeys(kind.states, (2, BATCH, HIDDEN))
    model = layer(kind, Direction.BIDIRECTIONAL, steps, states)
    count = steps if isinstance(steps, int) else STEPS
    given = {"lengths": np.array([0, 1, count], np.int32)}
    random = np.random.default_rng(1)
    for name, shape in {"x": (count, BATCH, WIDTH), **states}.items():
        given[name] = random.standard_normal(shape).astype(np.float32)
    agree(model, given)


@pytest.mark.parametrize("direction", Direction, ids=lambda direction: direction.name)
@pytest.mark.parametrize("steps", [STEPS, T], ids=["fixed", "open"])
@pytest.mark.parametrize("kind", GATES, ids=lambda kind: kind.__name__)
def test_openvino_has_networks_that_it_lacks_as_loops(
    kind: type[Recurrent], steps: Dim, direction: Direction
) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((STEPS, BATCH, WIDTH)).astype(np.float32)
    lengths = np.array([2, 5, 3], np.int32)
    agree(layer(kind, direction, steps, clip=0.5), {"x": x, "lengths": lengths})


def agree(model: Model, given: dict[str, np.ndarray[Any, Any]]) -> None:
    with (
        crosschip.compile(model, ["openvino"], cache=False) as compiled,
        crosschip.compile(model, ["reference"], cache=False) as reference,
    ):
        assert len(compiled.placement.decisions[0].parts) == 1
        expected = reference.run(given)
        for name, array in compiled.run(given).items():
            np.testing.assert_allclose(array, expected[name], rtol=1e-5, atol=1e-6)
