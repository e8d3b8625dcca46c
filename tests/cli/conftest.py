"""A small ONNX file, and the command line without a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from crosschip.cli import run
from crosschip.ir import Array


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)


Crosschip = Callable[..., Outcome]


@pytest.fixture
def crosschip(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Crosschip:
    """Runs a command line; the default cache is off limits."""
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", "/dev/null/no cache in tests")

    def command(*arguments: object) -> Outcome:
        capsys.readouterr()
        status = run(list(map(str, arguments)))
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return command


def classifier() -> onnx.ModelProto:
    """Two open sizes, two inputs that share one of them, and names that tables might stumble on."""
    weights = np.linspace(-1, 1, 2 * 3 * 3 * 3, dtype=np.float32).reshape(2, 3, 3, 3)
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], "conv[/b]", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("GlobalAveragePool", ["r"], ["p"], "pool"),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("Add", ["f", "shift"], ["s"], "add :x:"),
        helper.make_node("Softmax", ["s"], ["[bold]概率"], "softmax", axis=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, "H", 8])
    shift = helper.make_tensor_value_info("shift", TensorProto.FLOAT, ["N", 2])
    outputs = [
        helper.make_tensor_value_info("[bold]概率", TensorProto.FLOAT, ["N", 2]),
        helper.make_tensor_value_info("r", TensorProto.FLOAT, ["N", 2, "H", 8]),
    ]
    graph = helper.make_graph(
        nodes, "classifier", [image, shift], outputs, [numpy_helper.from_array(weights, "w")]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    path = tmp_path_factory.mktemp("model") / "classifier.onnx"
    onnx.save(classifier(), path)
    return path


def expected(inputs: dict[str, Array]) -> list[Array]:
    """The outputs that ONNX's own evaluator computes."""
    return [np.asarray(array) for array in ReferenceEvaluator(classifier()).run(None, inputs)]
