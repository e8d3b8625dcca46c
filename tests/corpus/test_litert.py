"""TensorFlow Lite files in the corpus: what they declare, and LiteRT's answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from corpus.entry import Entry
from corpus.precision import shortest_reals, steps
from corpus.reading import inputs_of, is_open
from tests.importers.tflite.sample import Writer, sample

from corpus import litert


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    path = tmp_path / "model.tflite"
    path.write_bytes(sample().file())
    return Entry("name", "family", "origin", path)


def test_inputs_are_those_of_the_first_subgraph(entry: Entry) -> None:
    assert {name: array.shape for name, array in inputs_of(entry).items()} == {
        "tensor0": (1, 8, 8, 3)
    }
    assert not is_open(entry)


def test_each_run_is_a_first_one(entry: Entry) -> None:
    inputs = inputs_of(entry)
    first, second = (litert.answer(entry.file, inputs) for _ in range(2))
    [array] = first
    assert array.shape == (1, 2)
    np.testing.assert_array_equal(array, second[0])
    np.testing.assert_allclose(
        array, litert.answer(entry.file, inputs, delegated=True)[0], rtol=1e-5
    )


def test_steps_of_dequantized_outputs(tmp_path: Path) -> None:
    w = Writer()
    w.subgraph()
    x, y = w.tensor((1, 2), np.int8, scales=[0.25]), w.tensor((1, 2))
    w.operator("DEQUANTIZE", [x], [y], "DequantizeOptions", version=2)
    z = w.tensor((1, 2))
    w.operator("TANH", [y], [z])
    w.finish([x], [y, z])
    path = tmp_path / "model.tflite"
    path.write_bytes(w.file())
    entry = Entry("name", "family", "origin", path)
    assert list(steps(entry)) == [0.25, 0.0]
    assert shortest_reals(entry) == "float32"
