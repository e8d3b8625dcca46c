"""The precision that model files compute with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from corpus.entry import Entry
from corpus.precision import shortest_reals, steps
from onnx import TensorProto, helper, numpy_helper


def entry_of(folder: Path, nodes: list[onnx.NodeProto], **constants: np.ndarray) -> Entry:
    """An entry whose file has these nodes; what they make is `y` and `z`."""
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "z")]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "graph", [], made, tensors)
    onnx.save(helper.make_model(graph), folder / "model.onnx")
    return Entry("name", "family", "origin", folder / "model.onnx")


@pytest.mark.parametrize(("type_", "reals"), [("Cast", "float32"), ("Neg", "float16")])
def test_constants_that_are_only_stored_short(tmp_path: Path, type_: str, reals: str) -> None:
    node = helper.make_node(type_, ["weights"], ["y"])
    assert shortest_reals(entry_of(tmp_path, [node], weights=np.ones(2, np.float16))) == reals


def test_steps_of_dequantized_outputs(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["y"]),
        helper.make_node("DequantizeLinear", ["x", "scale", "words"], ["z"]),
    ]
    entry = entry_of(
        tmp_path,
        nodes,
        scale=np.array([0.25, 0.5], np.float32),
        zero=np.zeros(2, np.uint8),
        words=np.zeros(2, np.uint16),
    )
    assert steps(entry) == [0.5, 0.0]
