"""Operators of a package inside models of frameworks, on every device, from the cache and not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import crosschip as cc
from crosschip.ir import Array, DeviceError, Model

PADDLE = Path(__file__).with_name("recorded")
DEVICES = ("reference", "onnxruntime", "openvino")


def softclip(x: Array, bound: float = 1.0) -> Array:
    return x / (1 + bound * np.abs(x))


def median_of_three(x: Array) -> Array:
    padded = np.concatenate([x[..., :1], x, x[..., -1:]], -1)
    return np.asarray(np.median([padded[..., :-2], padded[..., 1:-1], padded[..., 2:]], axis=0))


def in_onnx(times: int = 3) -> onnx.ModelProto:
    """Return the model that Paddle saved, as ONNX."""
    nodes = [
        helper.make_node("softclip", ["x"], ["a"], domain="example", bound=2.0),
        helper.make_node("tiled", ["a"], ["b"], domain="example", times=times),
        helper.make_node("median_of_three", ["b"], ["c"], domain="example"),
        helper.make_node("Add", ["c", "one"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    graph = helper.make_graph(nodes, "filters", [x], [y], [one])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("example", 1)]
    return helper.make_model(graph, opset_imports=opsets)


@pytest.fixture(params=["onnx", "paddle2.pdmodel", "paddle3.json"])
def model(request: pytest.FixtureRequest, filters: ModuleType) -> Model:
    return cc.load(in_onnx() if request.param == "onnx" else PADDLE / request.param)


@pytest.fixture
def recorded() -> Mapping[str, Array]:
    return dict(np.load(PADDLE / "paddle3.npz"))


def test_both_paddles_agree() -> None:
    two, three = np.load(PADDLE / "paddle2.npz"), np.load(PADDLE / "paddle3.npz")
    np.testing.assert_allclose(two["y"], three["y"], rtol=1e-6)
    expected = median_of_three(np.tile(softclip(two["x"], 2.0), (1, 3))) + 1
    np.testing.assert_allclose(two["y"], expected, rtol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_they_run_on_every_device(
    device: str, model: Model, recorded: Mapping[str, Array], tmp_path: Path
) -> None:
    assert [o.type for o in model.operations][:3] == [
        "example.softclip",
        "example.tiled",
        "example.median_of_three",
    ]
    (name,) = model.inputs
    for word in ("miss", "hit"):
        with cc.compile(model, [device], cache=tmp_path) as compiled:
            assert compiled.report.cache == word
            (y,) = compiled.run({name: recorded["x"]}).values()
            np.testing.assert_allclose(y, recorded["y"], rtol=1e-6, atol=1e-6)
            (again,) = compiled.run({name: recorded["x"][:2]}).values()
            np.testing.assert_allclose(again, recorded["y"][:2], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES[1:])
def test_each_style_has_its_way(device: str, filters: ModuleType) -> None:
    placement = cc.explain(cc.load(in_onnx()), [device])
    parts, own, kernel, standard = placement.decisions
    assert parts.device == own.device == standard.device == device
    assert "decomposed" in parts.reasons[device]
    assert own.reasons[device] == "supported"
    assert kernel.device == "reference"
    assert "not implemented on this device" in kernel.reasons[device]
    assert "only here for operators that packages bring" in standard.reasons["reference"]


@pytest.mark.parametrize("device", DEVICES)
def test_values_that_break_a_constraint_stop_a_run(device: str, filters: ModuleType) -> None:
    compiled = cc.compile(cc.load(in_onnx()), [device], cache=False)
    compiled(np.full((1, 4), 1000, np.float32))
    with pytest.raises(DeviceError, match=r"a\.assert_0|example\.softclip"):
        compiled(np.full((1, 4), 1001, np.float32))


@pytest.mark.slow
def test_a_supplement_keeps_an_operator_off_a_device(filters: ModuleType) -> None:
    placement = cc.explain(cc.load(in_onnx(times=4)), ["openvino", "onnxruntime"])
    tiled = placement.decisions[1]
    assert tiled.device == "onnxruntime"
    assert tiled.reasons["openvino"] == (
        "example.tiled.times: breaks the constraint 'times <= 3' "
        "(the package's supplement for openvino)"
    )
    assert tiled.refusals[0].rule is not None
    assert tiled.refusals[0].rule.value == "definition"


@pytest.mark.slow
def test_a_package_is_found_where_it_is_installed(
    environment: dict[str, str], tmp_path: Path, recorded: Mapping[str, Array]
) -> None:
    onnx.save(in_onnx(), tmp_path / "filters.onnx")

    def crosschip(*arguments: str) -> str:
        command = [sys.executable, "-m", "crosschip", *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    listed = {op["name"]: op for op in json.loads(crosschip("ops", "--json"))}
    assert listed["example.tiled"]["package"] == "Filters"
    assert listed["RELU"]["package"] is None
    assert "Each row, several times over" in crosschip("ops", "EXAMPLE.TILED")
    report = json.loads(
        crosschip("conformance", "openvino", "--case", "example.*", "--quick", "--json")
    )
    assert report["fail"] == report["not_run"] == 0
    assert report["pass"] > 5
    np.save(tmp_path / "x.npy", recorded["x"])
    devices = "openvino@driver,reference@driver"
    crosschip("run", "filters.onnx", "--devices", devices, "--input", "x=x.npy", "--save", "made")
    np.testing.assert_allclose(np.load(tmp_path / "made" / "0-y.npy"), recorded["y"], atol=1e-6)
