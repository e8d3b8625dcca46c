"""Large programs of real engines, run where they lie in the cache's folder."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import crosschip
from crosschip.ir import Array
from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.folder import Cache

WIDTH = 768


def write(path: Path, rows: int | str) -> Array:
    """A model of one product, whose weights are larger than what is copied; returns these."""
    weight = np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype(np.float32)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, WIDTH]) for name in ("x", "y")
    ]
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    held = [numpy_helper.from_array(weight, "w")]
    graph = helper.make_graph([node], "product", ends[:1], ends[1:], held)
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return weight


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("rows", [3, "n"])
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
def test_a_program_outlives_its_file_and_is_saved_again(
    device: str, isolate: bool, rows: int | str, planned: bool, tmp_path: Path
) -> None:
    path, cache = tmp_path / "model.onnx", tmp_path / "cache"
    weight = write(path, rows)

    def compiled() -> crosschip.CompiledModel:
        source = path if planned else crosschip.load(path)
        return crosschip.compile(
            source, [device], placement=crosschip.PlacementOptions(isolate=isolate), cache=cache
        )

    compiled().close()
    background_writer.wait()
    with compiled() as model:
        assert model.report.cache == "hit"
        assert Cache(cache).prune(0)
        for size, _ in itertools.product([3] if rows == 3 else [3, 1, 5], range(2)):
            x = np.random.default_rng(size).standard_normal((size, WIDTH)).astype(np.float32)
            np.testing.assert_allclose(model(x), x @ weight, rtol=1e-4, atol=1e-3)
        kept = model.to_bytes()
    with crosschip.load_compiled(kept) as again:
        np.testing.assert_allclose(again(x), x @ weight, rtol=1e-4, atol=1e-3)
