"""The synthetic models are what they are meant to be, in every format."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from benchmarks.synthetic import GRAPHS, SHAPE, WRITERS, Graph, constants_of

import crosschip
from crosschip.ir import Array

KERNELS: dict[str, Callable[..., Array]] = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "add": np.add,
}


def computed(graph: Graph, value: Array) -> Array:
    values = {0: value, **constants_of(graph)}
    for number, node in enumerate(graph, 1):
        values[number] = KERNELS[node.type](*(values[read] for read in node.inputs))
    return values[len(graph)]


@pytest.fixture(params=GRAPHS)
def graph(request: pytest.FixtureRequest) -> Graph:
    return GRAPHS[request.param](120)


@pytest.mark.parametrize("format", WRITERS)
def test_a_written_graph_computes_what_it_says(graph: Graph, format: str, tmp_path: Path) -> None:
    path = tmp_path / f"synthetic{format}"
    WRITERS[format](graph, path)
    model = crosschip.load(path)
    assert len(graph) == 120
    # The importer of ONNX folds what is small and constant, as conditions and shapes may be.
    folded = format == ".onnx"
    kept = [node for node in graph if not folded or any(value >= 0 for value in node.inputs)]
    assert len(model.operations) == len(kept)
    value = np.linspace(-2, 2, 8, dtype=np.float32).reshape(SHAPE)
    with crosschip.compile(model, ["reference"], cache=False) as compiled:
        output = compiled(value)
    np.testing.assert_allclose(output, computed(graph, value), rtol=1e-5)


def test_onnx_accepts_the_onnx_file(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "synthetic.onnx"
    WRITERS[".onnx"](graph, path)
    onnx.checker.check_model(path, full_check=True)


def test_every_operation_counts(graph: Graph) -> None:
    read = {value for node in graph for value in node.inputs}
    assert read >= set(range(len(graph)))
    assert len(graph) not in read


def test_a_chain_is_long_and_a_wide_graph_is_not() -> None:
    depths = {}
    for name, make in GRAPHS.items():
        depth = {0: 0}
        for number, node in enumerate(make(1000), 1):
            depth[number] = 1 + max(depth.get(read, 0) for read in node.inputs)
        depths[name] = max(depth.values())
    assert depths == {"chain": 800, "wide": 11}
