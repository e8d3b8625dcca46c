"""Recurrent layers whose sequences end early, on OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest

import crosschip
from crosschip.ir import (
    Builder,
    DeviceError,
    Dim,
    ElementType,
    Model,
    TensorType,
    UnsupportedError,
    symbol,
)
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction, Recurrent

STEPS, BATCH, WIDTH, HIDDEN = 5, 3, 4, 6
GATES = {RNN: 1, GRU: 3, LSTM: 4}


def layer(kind: type[Recurrent], direction: Direction, steps: Dim = STEPS) -> Model:
    random = np.random.default_rng(0)
    passes, rows = len(direction.passes), GATES[kind] * HIDDEN
    shapes = (passes, rows, WIDTH), (passes, rows, HIDDEN), (passes, 2 * rows)
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (steps, BATCH, WIDTH)))
    lengths = b.input("lengths", TensorType(ElementType.INT32, (BATCH,)))
    weights = [b.constant(random.standard_normal(shape).astype(np.float32)) for shape in shapes]
    made = b.add_all(kind, x, *weights, sequence_lengths=lengths, direction=direction)
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


def test_openvino_takes_no_lengths_where_sizes_are_open() -> None:
    model = layer(GRU, Direction.FORWARD, symbol("T"))
    with pytest.raises(UnsupportedError, match="sequence_lengths: the input's sizes are open"):
        crosschip.compile(model, ["openvino"], cache=False)
