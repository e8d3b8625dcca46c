"""Comparisons of engines, devices and mixtures: who takes part, times, errors, and reasons."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.cli.conftest import classifier
from tests.modelling import DelegatingDevice, chain

import crosschip as cc
from crosschip.comparison import Comparison, Measurement, oracle
from crosschip.comparison.oracle import Oracle, largest_difference
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options, Program
from crosschip.ir import Array, DeviceError, InputError, Model
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.runtime import discovery

pytestmark = pytest.mark.slow

SHAPES = {"N": 2, "H": 5}


class Slow(DelegatingDevice):
    """A device that sleeps for 20 ms in each run."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties, name="slow")

    def compile(self, model: Model, options: Options) -> Program:
        return SlowProgram(model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return SlowProgram(model)


class SlowProgram(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        time.sleep(0.02)
        return super().run(inputs)


class Wrong(DelegatingDevice):
    """A device whose outputs are too large by 0.5."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties, name="wrong")

    def compile(self, model: Model, options: Options) -> Program:
        return WrongProgram(model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return WrongProgram(model)


class WrongProgram(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return [output + np.float32(0.5) for output in super().run(inputs)]


class NoTanh(DelegatingDevice):
    """A device that declines an operator."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties, name="no-tanh", declines=["TANH"])


class Crashing(DelegatingDevice):
    """A device whose compiler crashes."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties, name="crashing", fails=["RELU", "TANH"])


class Hot(DelegatingDevice):
    """A device whose runs fail."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties, name="hot")

    def compile(self, model: Model, options: Options) -> Program:
        return HotProgram(model)


class HotProgram(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        raise DeviceError("the chip is hot")


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs devices of this module, and the reference."""

    def install(**classes: type[DelegatingDevice]) -> None:
        values = {
            name.replace("_", "-"): f"{__name__}:{each.__name__}" for name, each in classes.items()
        }
        values["reference"] = "crosschip.devices.reference:ReferenceDevice"
        entries = {n: [EntryPoint(n, value, discovery.GROUP)] for n, value in values.items()}
        monkeypatch.setattr(discovery, "entries", lambda: entries)

    return install


def by_label(comparison: Comparison) -> dict[str, Measurement]:
    return {each.label: each for each in comparison.measurements}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare") / "classifier.onnx"
    onnx.save(classifier(), path)
    return path


def test_engines_and_devices_on_one_file(path: Path) -> None:
    devices = ["onnxruntime", "openvino", "reference"]
    result = cc.compare(path, devices, shapes=SHAPES, runs=7, cache=False)
    assert set(by_label(result)) == {
        *("onnxruntime", "openvino"),
        *("crosschip onnxruntime", "crosschip openvino", "crosschip reference"),
        "crosschip measured",
    }
    assert (result.model, result.runs) == ("classifier.onnx", 7)
    assert result.inputs == {"image": (2, 3, 5, 8), "shift": (2, 2)}
    medians = [each.timing.median_ms for each in result.timed if each.timing]
    assert len(medians) == 6
    assert medians == sorted(medians)
    for each in result.timed:
        assert each.timing is not None
        assert 0 < each.timing.best_ms <= each.timing.p25_ms <= each.timing.median_ms
        assert each.timing.median_ms <= each.timing.p75_ms
        assert each.error is not None
        assert each.error < 1e-5
        assert (each.devices == ()) == each.engine
        assert each.devices in ((), (each.name,)) or each.name == "measured"
    baseline = result.baseline
    assert baseline is not None
    assert baseline.engine
    assert result.speed(baseline) == 1
    assert result.exact == "the reference (NumPy)"


def test_outputs_count_as_exact_if_onnx_computes_the_same(path: Path) -> None:
    generator = np.random.default_rng(1)
    inputs = {
        "image": generator.standard_normal((1, 3, 4, 8), np.float32),
        "shift": generator.standard_normal((1, 2), np.float32),
    }
    model = cc.load(path)
    exact = Oracle(model, inputs, {}, []).outputs
    for name, array in zip(exact, ReferenceEvaluator(classifier()).run(None, inputs), strict=True):
        np.testing.assert_allclose(exact[name], array, rtol=1e-5, atol=1e-6)
    result = cc.compare(path, "onnxruntime", inputs=inputs, engines=[], runs=1, cache=False)
    assert result.inputs == {"image": (1, 3, 4, 8), "shift": (1, 2)}
    assert [each.engine for each in result.measurements] == [False]


def test_open_sizes_are_typical_ones(path: Path) -> None:
    result = cc.compare(path, "onnxruntime", engines=["onnxruntime"], runs=1, cache=False)
    (count, _, height, width), (rows, _) = result.inputs["image"], result.inputs["shift"]
    assert count == rows >= 1
    assert height >= 1
    assert width == 8


def test_a_slow_reference_leaves_the_first_engine(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracle, "REFERENCE_SECONDS", 0.0)
    result = cc.compare(path, "openvino", shapes=SHAPES, runs=1, cache=False)
    assert result.exact == "onnxruntime"
    assert by_label(result)["onnxruntime"].error == 0
    assert 0 < (by_label(result)["crosschip openvino"].error or 0) < 1e-5
    model = cc.load(path)
    result = cc.compare(model, "openvino", shapes=SHAPES, runs=1, cache=False)
    assert result.exact == "crosschip openvino"


def test_the_error_of_a_wrong_device(install: Install) -> None:
    install(wrong=Wrong)
    inputs = {"x0": np.array([3.0, 4.0], np.float32)}
    result = cc.compare(chain(Relu), "wrong", inputs=inputs, runs=1, cache=False)
    (measurement,) = result.measurements
    assert measurement.largest_difference == 0.5
    assert measurement.error == pytest.approx(np.sqrt(0.5) / 5)


def test_who_does_not_run_is_a_row_with_its_reason(install: Install) -> None:
    install(slow=Slow, crashing=Crashing, hot=Hot, no_tanh=NoTanh)
    devices = ["slow", "crashing", "hot", "no-tanh"]
    result = cc.compare(chain(Relu, Tanh), devices, runs=1, cache=False)
    assert [each.name for each in result.failed] == ["crashing", "hot", "no-tanh"]
    reasons = {each.name: each.short_reason for each in result.failed}
    assert "the compiler of crashing crashed on RELU" in reasons["crashing"]
    assert "the chip is hot" in reasons["hot"]
    assert "TANH: not implemented" in reasons["no-tanh"]
    assert {each.name for each in result.timed} == {"slow", "measured", "no-tanh + slow"}
    text = str(result)
    for reason in reasons.values():
        assert f"did not run: {reason}" in text
        assert reason in result.to_svg()


def test_mixtures_take_part_if_several_devices_run_operations(install: Install) -> None:
    install(slow=Slow, no_tanh=NoTanh)
    result = cc.compare(chain(Relu, Tanh), ["slow", "no-tanh"], runs=3, cache=False)
    names = {each.name: each.devices for each in result.timed}
    mixed = {"no-tanh + slow": ("no-tanh", "slow")}
    assert names == {"slow": ("slow",), "measured": ("slow",), **mixed}
    assert all(each.timing and each.timing.best_ms >= 20 for each in result.timed)


def test_auto_takes_part_unless_devices_are_named(install: Install, tmp_path: Path) -> None:
    install(slow=Slow, wrong=Wrong)
    result = cc.compare(chain(Relu), runs=3, cache=tmp_path)
    names = {each.name: each.devices for each in result.timed}
    assert names == {"slow": ("slow",), "wrong": ("wrong",), "auto": ("wrong",)}
    assert result.timed[-1].name == "slow"
    speed = result.speed(result.timed[-1])
    assert speed is not None
    assert 0 < speed < 0.5


def test_if_nothing_runs_all_are_rows(install: Install) -> None:
    install(hot=Hot)
    result = cc.compare(chain(Relu), "hot", runs=3, cache=False)
    assert (result.timed, result.baseline) == ([], None)
    assert "the chip is hot" in result.to_svg()
    assert result.to_json()["baseline"] is None


def test_slow_runs_are_fewer(install: Install) -> None:
    install(slow=Slow)
    result = cc.compare(chain(Relu), "slow", runs=50, seconds=0.2, cache=False)
    assert 5 <= result.runs <= 10


def test_precisions_of_one_device(path: Path) -> None:
    devices = "openvino,openvino/bfloat16"
    result = cc.compare(path, devices, shapes=SHAPES, engines=[], runs=1, cache=False)
    exact, rounded = (
        by_label(result)[f"crosschip {name}"].error or 0 for name in devices.split(",")
    )
    assert exact < 1e-5
    assert rounded < 0.1


def test_paddle_files_are_for_the_engines_that_read_them() -> None:
    folder = Path(__file__).parents[2] / "build" / "models" / "paddle2" / "mobilenet_v3_small"
    if not folder.exists():
        pytest.skip("`make models` has not been run")
    result = cc.compare(folder, "onnxruntime", runs=1, cache=False)
    assert result.model == "mobilenet_v3_small"
    assert {"openvino", "crosschip onnxruntime"} <= set(by_label(result))
    assert "onnxruntime" not in by_label(result)
    for each in result.timed:
        assert each.error is not None
        assert each.error < 1e-4
    named = cc.compare(folder, "onnxruntime", engines=["onnxruntime"], runs=1, cache=False)
    assert "reads .onnx files only" in by_label(named)["onnxruntime"].reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"devices": "opnvino"}, "no device 'opnvino'.*did you mean 'openvino'"),
        ({"engines": ["tensorflow"]}, "no engine 'tensorflow' to compare with"),
        ({"inputs": {"picture": np.zeros(2)}}, "no input 'picture'"),
        ({"inputs": {"image": np.zeros((1, 3, 4, 9), np.float32)}}, "image"),
        ({"shapes": {"image": (1, 4, 4, 8)}}, "image"),
        ({"runs": 0}, "runs is 0"),
        ({"seconds": -1.0}, "seconds is -1.0"),
        ({"configuration": "nosuch.toml"}, "nosuch.toml"),
    ],
)
def test_bad_arguments(path: Path, arguments: dict[str, object], message: str) -> None:
    with pytest.raises((InputError, DeviceError), match=message):
        cc.compare(path, **{"devices": "onnxruntime", "cache": False, **arguments})  # type: ignore[arg-type]


def test_inputs_of_another_type_are_errors(path: Path) -> None:
    inputs = {"image": np.zeros((1, 3, 4, 8)), "shift": np.zeros((1, 2), np.float32)}
    with pytest.raises(InputError, match="image"):
        cc.compare(path, "onnxruntime", inputs=inputs, runs=1, cache=False)


def test_inputs_of_other_shapes_are_errors(path: Path) -> None:
    inputs = {
        "image": np.zeros((1, 3, 4, 9), np.float32),
        "shift": np.zeros((1, 2), np.float32),
    }
    with pytest.raises(InputError, match="image"):
        cc.compare(path, "onnxruntime", inputs=inputs, runs=1, cache=False)


def test_an_engine_whose_runs_fail_is_a_row(tmp_path: Path) -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"])
    graph = helper.make_graph(
        [node],
        "gather",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
            helper.make_tensor_value_info("i", TensorProto.INT64, [1]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    onnx.save(helper.make_model(graph, ir_version=8), tmp_path / "gather.onnx")
    inputs = {"x": np.zeros(3, np.float32), "i": np.array([7])}
    result = cc.compare(
        tmp_path / "gather.onnx", "onnxruntime", inputs=inputs, engines=["onnxruntime"], runs=1,
        cache=False,
    )  # fmt: skip
    assert result.timed == []
    for each in result.failed:
        assert "idx=7" in each.reason


def test_json_is_plain(path: Path) -> None:
    result = cc.compare(path, "onnxruntime", shapes=SHAPES, engines=["onnxruntime"], runs=2)
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert document["baseline"] == "onnxruntime"
    assert document["inputs"] == {"image": [2, 3, 5, 8], "shift": [2, 2]}
    assert {row["name"] for row in document["measurements"]} == {"onnxruntime"}
    for row in document["measurements"]:
        assert row["median_ms"] > 0
        assert row["reason"] == ""
    assert document["machine"]["crosschip"]


def test_a_difference_that_rounding_explains_is_no_error() -> None:
    model, x = chain(Sigmoid), {"x0": np.full(2, -11.7, np.float32)}
    exact = Oracle(model, x, {}, [])
    (value,) = exact.outputs.values()
    for off, error in ((1.5e-7, 0.0), (8e-6, pytest.approx(1, abs=0.2))):
        outputs = dict.fromkeys(exact.outputs, value + np.float32(off))
        assert exact.error(outputs) == error
        assert exact.largest_difference(outputs) == pytest.approx(off, rel=1e-3)


@pytest.mark.parametrize(
    ("computed", "exact", "difference"),
    [
        ([1.0, 2.5], [1.0, 2.0], 0.5),
        ([np.nan, np.inf], [np.nan, np.inf], 0.0),
        ([np.nan, 1.0], [0.0, 1.0], np.inf),
        ([1.0], [1.0, 1.0], np.inf),
        ([], [], 0.0),
    ],
)
def test_the_largest_difference(
    computed: list[float], exact: list[float], difference: float
) -> None:
    arrays = {"y": np.array(computed)}, {"y": np.array(exact)}
    assert largest_difference(*arrays) == difference
