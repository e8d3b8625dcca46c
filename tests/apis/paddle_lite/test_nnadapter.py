"""Each of the settings for NNAdapter's devices has an effect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.paddle.helpers import VALUE
from tests.importers.paddle.writers import Paddle2Writer

from crosschip.apis.nnadapter.context import NNAdapterContext
from crosschip.apis.nnadapter.drivers import DRIVERS, Driver
from crosschip.apis.paddle_lite import (
    CxxConfig,
    CxxPredictor,
    MobileConfig,
    Place,
    TargetType,
    create_paddle_predictor,
)
from crosschip.hal.capabilities import Precision
from crosschip.ir import Error, InputError, UnsupportedError
from crosschip.runtime.compiled import CompiledModel

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
FILES = ("inference.pdmodel", "inference.pdiparams")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a model that multiplies [N, 3] by a matrix, and takes what is positive."""
    writer = Paddle2Writer()
    writer.input("x", "float32", [-1, 3])
    writer.parameter("w", VALUE)
    writer.variable("y", "float32", [-1, 3])
    writer.variable("z", "float32", [-1, 3])
    writer.operator("matmul_v2", {"X": "x", "Y": "w"}, {"Out": "y"})
    writer.operator("relu", {"X": "y"}, {"Out": "z"})
    writer.output("z")
    writer.save(tmp_path)
    return tmp_path


def configured(folder: Path, *devices: str) -> CxxConfig:
    config = CxxConfig()
    config.set_model_file(str(folder / FILES[0]))
    config.set_param_file(str(folder / FILES[1]))
    config.set_valid_places([Place(TargetType.NNAdapter), Place(TargetType.Host)])
    config.set_nnadapter_device_names(list(devices))
    return config


def compiled(config: CxxConfig | MobileConfig) -> CompiledModel:
    """What a predictor has compiled, once it is right."""
    predictor = create_paddle_predictor(config)
    predictor.get_input(0).from_numpy(X)
    predictor.run()
    np.testing.assert_allclose(predictor.get_output(0).numpy(), np.maximum(X @ VALUE, 0))
    return predictor._session.compiled


def placed(model: CompiledModel) -> Mapping[str, str]:
    """The device of each operation."""
    return {d.operation.type: d.device or "" for d in model.placement.decisions}


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("builtin_device", True), ("intel_openvino", True), ("google_xnnpack", True),
        ("reference", True), ("huawei_ascend_npu", False), ("", False),
    ],
)  # fmt: skip
def test_a_device_is_there_or_not(name: str, there: bool) -> None:
    assert CxxConfig().check_nnadapter_device_name(name) is there
    assert MobileConfig().check_nnadapter_device_name(name) is there


@pytest.mark.parametrize(
    ("name", "device"),
    [("builtin_device", "reference"), ("google_xnnpack", "onnxruntime"),
     ("intel_openvino", "openvino"), ("onnxruntime", "onnxruntime")],
)  # fmt: skip
def test_the_device_that_is_named_runs_it(folder: Path, name: str, device: str) -> None:
    assert set(placed(compiled(configured(folder, name))).values()) == {device}


def test_devices_are_for_the_place_nnadapter(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(folder, "google_xnnpack")
    config.set_valid_places([Place(TargetType.Host)])
    monkeypatch.setattr(CxxConfig, "devices", ["reference"])
    assert set(placed(compiled(config)).values()) == {"reference"}
    assert "no valid place is NNAdapter" in caplog.text


def test_a_device_that_is_not_there_is_an_error(folder: Path) -> None:
    with pytest.raises(Error, match="npu_of_nobody"):
        create_paddle_predictor(configured(folder, "npu_of_nobody"))
    with pytest.raises(InputError, match="no list of names"):
        CxxConfig().set_nnadapter_device_names("builtin_device")


def test_context_properties_are_settings_of_the_device(folder: Path) -> None:
    config = configured(folder, "google_xnnpack")
    config.set_nnadapter_context_properties(
        "GOOGLE_XNNPACK_NUM_THREADS=1;ONNXRUNTIME_SPINNING=0;OTHER_NPU_CORE=7"
    )
    model = compiled(config)
    assert model.options.threads == 1
    assert config.context().properties == {"onnxruntime": {"spinning": "0"}}
    config.set_nnadapter_context_properties("HUAWEI_ASCEND_NPU_SELECTED_DEVICE_IDS=0")
    with pytest.raises(Error, match="no device for Huawei's Ascend NPUs"):
        create_paddle_predictor(config)
    config.set_nnadapter_context_properties("ONNXRUNTIME_NO_SUCH_SETTING=1")
    with pytest.raises(Error, match="no_such_setting"):
        create_paddle_predictor(config)


def test_properties_of_the_driver_of_openvino_reach_the_device(folder: Path) -> None:
    config = configured(folder, "intel_openvino")
    config.set_nnadapter_context_properties(
        "INTEL_OPENVINO_INFERENCE_NUM_THREADS=1;INTEL_OPENVINO_SELECT_DEVICE_NAMES=CPU"
    )
    assert compiled(config).options.threads == 1


def test_a_driver_may_say_in_what_precision_to_compute(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference takes the place of their chips; it has no float16, and so says what it got."""
    precision = DRIVERS["nvidia_tensorrt"].properties
    monkeypatch.setitem(DRIVERS, "builtin_device", Driver("a chip", "reference", precision))
    config = configured(folder, "builtin_device")
    assert compiled(config).options.precision is Precision.FLOAT32
    config.set_nnadapter_context_properties("BUILTIN_DEVICE_PRECISION=float16")
    with pytest.raises(UnsupportedError, match="computes in float32, not in float16"):
        create_paddle_predictor(config)


def test_the_callback_is_the_contexts(folder: Path) -> None:
    asked: list[int] = []

    def callback(event: int, data: object) -> int:
        asked.append(event)
        return 0

    config = configured(folder, "builtin_device")
    config.set_nnadapter_context_callback(callback)
    context: NNAdapterContext = config.context()
    assert context.callback is config.nnadapter_context_callback() is callback
    compiled(config)
    assert not asked  # no device of crosschip's own asks
    with pytest.raises(InputError, match="cannot be called"):
        config.set_nnadapter_context_callback(3)  # type: ignore[arg-type]


def test_the_cache_folder_has_what_was_compiled(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "made" / "cache"
    config = configured(folder, "google_xnnpack")
    config.set_nnadapter_model_cache_dir(str(cache))
    first = compiled(config)
    assert [path.stem for path in cache.glob("*.nnc")] == [first.token]
    assert (first.report.cache, compiled(config).report.cache) == ("miss", "hit")


def test_cache_buffers_are_used_by_their_tokens(folder: Path, tmp_path: Path) -> None:
    config = configured(folder, "google_xnnpack")
    config.set_nnadapter_model_cache_dir(str(tmp_path / "cache"))
    plain = compiled(config)
    sealed = (tmp_path / "cache" / f"{plain.token}.nnc").read_bytes()
    for content in (sealed, plain.to_bytes()):
        other = configured(folder, "google_xnnpack")
        other.set_nnadapter_model_cache_buffers(plain.token, content)
        assert compiled(other).report.cache == "hit"
    wrong = configured(folder, "google_xnnpack")
    wrong.set_nnadapter_model_cache_buffers("f" * 32, plain.to_bytes())
    assert compiled(wrong).report.cache == "miss"
    for token, content in (("f" * 32, b"x"), ("e" * 32, b""), ("../e", b"x")):
        with pytest.raises(InputError):
            wrong.set_nnadapter_model_cache_buffers(token, content)


@pytest.mark.parametrize("by_path", [True, False])
def test_a_partition_keeps_operators_on_processors(
    folder: Path, tmp_path: Path, by_path: bool
) -> None:
    config = configured(folder, "builtin_device")
    content = "relu:y:z\n"
    (tmp_path / "partition.txt").write_text(content)
    if by_path:
        config.set_nnadapter_subgraph_partition_config_path(str(tmp_path / "partition.txt"))
    else:
        config.set_nnadapter_subgraph_partition_config_buffer(content)
        assert config.nnadapter_subgraph_partition_config_buffer() == content
    model = placed(compiled(config))
    assert model["MAT_MUL"] == "reference"
    assert model["RELU"] != "reference"


@pytest.mark.parametrize("by_path", [True, False])
def test_mixed_precision_computes_quantized_operators_in_float32(
    tmp_path: Path, by_path: bool
) -> None:
    content = "matmul_v2:a:b\n"
    (tmp_path / "mixed.txt").write_text(content)
    quantized(tmp_path)
    made = {}
    for mixed in (False, True):
        config = configured(tmp_path, "builtin_device")
        if mixed and by_path:
            config.set_nnadapter_mixed_precision_quantization_config_path(
                str(tmp_path / "mixed.txt")
            )
        elif mixed:
            config.set_nnadapter_mixed_precision_quantization_config_buffer(content)
        predictor = create_paddle_predictor(config)
        predictor.get_input(0).from_numpy(X / 10)
        predictor.run()
        made[mixed] = predictor.get_output(0).numpy()
        in_float = predictor._session.compiled.placement.in_float
        assert bool(in_float) is mixed
    assert made[True].shape == made[False].shape


@pytest.mark.slow
def test_mixed_precision_keeps_operators_in_float32_on_a_device_in_bfloat16(folder: Path) -> None:
    config = configured(folder, "xla/bfloat16")
    config.set_nnadapter_mixed_precision_quantization_config_buffer("relu:y:z\n")
    model = placed(compiled(config))
    assert (model["MAT_MUL"], model["RELU"]) == ("xla/bfloat16", "xla/float32")


def quantized(folder: Path) -> None:
    """A model whose product is of integers with scales, and of int8 before it is handed out."""
    writer = Paddle2Writer()
    scale, zero = np.array([0.05], np.float32), np.array([0], np.int32)
    writer.input("x", "float32", [-1, 3])
    for name, value in (("w", VALUE), ("s", scale), ("n", zero)):
        writer.parameter(name, value)
    for name in ("a", "b", "c", "d", "e"):
        writer.variable(name, "float32", [-1, 3])
    attributes = {"quant_axis": -1, "bit_length": 8}
    for source, between, result in (("x", "d", "a"), ("b", "e", "c")):
        given = {"Scale": "s", "ZeroPoint": "n"}
        writer.operator("quantize_linear", {"X": source, **given}, {"Y": between}, attributes)
        writer.operator("dequantize_linear", {"X": between, **given}, {"Y": result}, attributes)
        if source == "x":
            writer.operator("matmul_v2", {"X": "a", "Y": "w"}, {"Out": "b"})
    writer.output("c")
    writer.save(folder)


def test_shapes_are_compiled_for_at_once(folder: Path) -> None:
    config = configured(folder, "google_xnnpack")
    config.set_nnadapter_dynamic_shape_info({"x": [[1, 3], [2, 3], [7, 3]]})
    assert config.nnadapter_dynamic_shape_info() == {"x": [(1, 3), (2, 3), (7, 3)]}
    sizes = compiled(config).options.sizes
    assert [dict(profile) for profile in sizes.profiles] == [{"N": 1}, {"N": 2}, {"N": 7}]
    config.set_nnadapter_dynamic_shape_info({"x": [[-1, 3]]})
    assert not compiled(config).options.sizes.profiles
    for wrong in ({"x": [[1.5]]}, 3):
        with pytest.raises(InputError):
            config.set_nnadapter_dynamic_shape_info(wrong)  # type: ignore[arg-type]


def test_an_optimised_model_takes_the_same_settings(tmp_path: Path) -> None:
    recorded = Path(__file__).parents[2] / "importers" / "paddle" / "lite" / "recorded"
    oracle = np.load(recorded / "network.npz")
    config = MobileConfig()
    config.set_model_from_file(str(recorded / "network-arm.nb"))
    config.set_nnadapter_device_names(["intel_openvino"])
    config.set_nnadapter_context_properties("INTEL_OPENVINO_NUM_THREADS=1")
    config.set_nnadapter_model_cache_dir(str(tmp_path / "cache"))
    config.set_nnadapter_dynamic_shape_info({"x": [[2, 4, 8, 8], [1, 4, 8, 8]]})
    for word in ("miss", "hit"):
        predictor = create_paddle_predictor(config)
        predictor.get_input(0).from_numpy(oracle["x"])
        predictor.run()
        np.testing.assert_allclose(predictor.get_output(0).numpy(), oracle["y"], 1e-4, 1e-5)
        model = predictor._session.compiled
        assert set(placed(model).values()) == {"openvino"}
        assert (model.report.cache, model.options.threads) == (word, 1)


def test_settings_that_are_no_texts_are_refused() -> None:
    config: Any = CxxConfig()
    for name in dir(config):
        if name.startswith("set_nnadapter") and name.endswith(("_path", "_dir", "_properties")):
            with pytest.raises(InputError, match=name):
                getattr(config, name)(3)


def test_a_predictor_is_saved_with_its_ending(folder: Path, tmp_path: Path) -> None:
    predictor = create_paddle_predictor(configured(folder, "google_xnnpack"))
    assert isinstance(predictor, CxxPredictor)
    predictor.save_optimized_model(str(tmp_path / "saved"))
    assert os.listdir(tmp_path).count("saved.nb") == 1
    config = MobileConfig()
    config.set_model_from_buffer((tmp_path / "saved.nb").read_bytes())
    assert config.is_model_from_memory()
    assert placed(compiled(config)) == placed(predictor._session.compiled)
