"""Configurations and tensors, beside the settings for NNAdapter's devices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.importers.paddle.helpers import VALUE, small
from tests.importers.paddle.lite import naive_writer
from tests.importers.paddle.writers import record

from crosschip.apis.paddle_lite import (
    CLPrecisionType,
    CLTuneMode,
    CxxConfig,
    CxxPredictor,
    LightPredictor,
    MobileConfig,
    Place,
    PowerMode,
    PrecisionType,
    TargetType,
    create_paddle_predictor,
)
from crosschip.apis.paddle_lite.config import ConfigBase
from crosschip.ir import Error, InputError, ModelFileError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def _reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConfigBase, "devices", ["reference"])


@pytest.fixture
def config(tmp_path: Path) -> CxxConfig:
    small().save(tmp_path)
    made = CxxConfig()
    made.set_model_dir(str(tmp_path))
    return made


def result(predictor: LightPredictor) -> Any:
    predictor.get_input(0).from_numpy(X)
    predictor.run()
    return predictor.get_output(0).numpy()


def test_a_model_is_named_in_every_way_that_paddle_lite_has(
    tmp_path: Path, config: CxxConfig
) -> None:
    files = [tmp_path / "inference.pdmodel", tmp_path / "inference.pdiparams"]
    by_files, from_memory, light, light_from_memory = CxxConfig(), CxxConfig(), *_two_mobile()
    by_files.set_model_file(str(files[0]))
    by_files.set_param_file(str(files[1]))
    program, parameters = (file.read_bytes() for file in files)
    from_memory.set_model_buffer(program, len(program), parameters, len(parameters))
    assert from_memory.is_model_from_memory()
    (tmp_path / "model.nb").write_bytes(naive_writer.file(small()))
    light.set_model_from_file(str(tmp_path / "model.nb"))
    light_from_memory.set_model_from_buffer(naive_writer.file(small()))
    for each in (config, by_files, from_memory, light, light_from_memory):
        np.testing.assert_array_equal(result(create_paddle_predictor(each)), X @ VALUE)


def _two_mobile() -> tuple[MobileConfig, MobileConfig]:
    return MobileConfig(), MobileConfig()


def test_a_model_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    for kind in (CxxConfig, MobileConfig):
        with pytest.raises(InputError, match="names no model"):
            create_paddle_predictor(kind())
    mobile = MobileConfig()
    mobile.set_model_from_file(str(tmp_path / "nothing.nb"))
    with pytest.raises(ModelFileError, match=r"nothing\.nb: there is no such file"):
        create_paddle_predictor(mobile)
    mobile.set_model_from_buffer(b"nothing")
    with pytest.raises(ModelFileError, match="damaged"):
        create_paddle_predictor(mobile)
    with pytest.raises(InputError, match="str is no bytes"):
        mobile.set_model_from_buffer("text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "performance"),
    [
        (PowerMode.LITE_POWER_HIGH, "high"),
        (PowerMode.LITE_POWER_LOW, "low"),
        (PowerMode.LITE_POWER_FULL, "extreme"),
        (PowerMode.LITE_POWER_NO_BIND, "none"),
        (PowerMode.LITE_POWER_RAND_HIGH, "high"),
        (PowerMode.LITE_POWER_RAND_LOW, "low"),
    ],
)
def test_power_modes_are_performance_modes(
    config: CxxConfig, mode: PowerMode, performance: str
) -> None:
    config.set_power_mode(mode)
    config.set_threads(2)
    predictor = create_paddle_predictor(config)
    assert config.power_mode() is mode
    options = predictor._session.compiled.options
    assert (options.performance.value, options.threads) == (performance, 2)
    with pytest.raises(InputError, match="set_threads: 0"):
        config.set_threads(0)


def test_what_chooses_among_opencls_kernels_is_accepted_and_said(
    config: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosschip.apis.paddle_lite.config.NOTES._reported", set())
    config.set_opencl_binary_path_name("./", "kernels.bin")
    config.set_opencl_tune(CLTuneMode.CL_TUNE_NORMAL, "./", "tuned.bin", 4)
    config.set_opencl_precision(CLPrecisionType.CL_PRECISION_AUTO)
    places = [Place(TargetType.OpenCL, PrecisionType.FP16), Place(TargetType.XPU)]
    config.set_valid_places([*places, Place(TargetType.Host)])
    np.testing.assert_array_equal(result(create_paddle_predictor(config)), X @ VALUE)
    for text in ("set_opencl_tune is accepted", "TargetType.OpenCL is accepted", "XPU"):
        assert text in caplog.text
    with pytest.raises(InputError, match="set_opencl_tune"):
        config.set_opencl_tune()


def test_float16_is_the_arithmetic_where_it_is_asked_for_by_name(config: CxxConfig) -> None:
    half = PrecisionType.FP16
    for places, precision in (
        ([Place(TargetType.ARM, half)], "float16"),
        ([Place(TargetType.OpenCL, half)], "float32"),
        ([Place(TargetType.ARM), Place(TargetType.ARM, half)], "float32"),
    ):
        config.set_valid_places(places)
        assert config._arguments(places).get("precision", "float32") == precision
    config.set_opencl_precision(CLPrecisionType.CL_PRECISION_FP16)
    assert config._arguments([])["precision"] == "float16"


def test_a_saved_model_is_loaded_without_being_compiled(config: CxxConfig, tmp_path: Path) -> None:
    config.set_nnadapter_device_names(["google_xnnpack"])
    config.set_valid_places([Place(TargetType.NNAdapter)])
    predictor = create_paddle_predictor(config)
    assert isinstance(predictor, CxxPredictor)
    predictor.save_optimized_model(str(tmp_path / "optimised.nb"))
    mobile = MobileConfig()
    mobile.set_model_from_file(str(tmp_path / "optimised.nb"))
    np.testing.assert_array_equal(result(create_paddle_predictor(mobile)), X @ VALUE)
    with pytest.raises(InputError, match="cannot be written"):
        predictor.save_optimized_model(str(tmp_path / "nowhere" / "at" / "all"))


@pytest.mark.parametrize("given", ["folder", "files", "contents", "separate"])
def test_a_model_is_saved_as_a_program_that_loads_again(given: str, tmp_path: Path) -> None:
    writer, config = small(), CxxConfig()
    program = writer.save(tmp_path)
    parameters = program.with_suffix(".pdiparams")
    if given == "files":
        config.set_model_file(str(program))
        config.set_param_file(str(parameters))
    elif given == "contents":
        contents = program.read_bytes(), parameters.read_bytes()
        config.set_model_buffer(contents[0], len(contents[0]), contents[1], len(contents[1]))
    elif given == "separate":
        program.rename(tmp_path / "__model__")
        parameters.unlink()
        for name, value in writer.parameters.items():
            (tmp_path / name).write_bytes(record(value))
        config.set_model_dir(str(tmp_path))
    else:
        config.set_model_dir(str(tmp_path))
    predictor = create_paddle_predictor(config)
    assert isinstance(predictor, CxxPredictor)
    predictor.save_optimized_pb_model(str(tmp_path / "p b" / "é"))
    again = CxxConfig()
    again.set_model_dir(str(tmp_path / "p b" / "é"))
    np.testing.assert_array_equal(result(create_paddle_predictor(again)), X @ VALUE)
    with pytest.raises(InputError, match="cannot be written"):
        predictor.save_optimized_pb_model("/dev/null/folder")


def test_tensors_that_are_not_there_are_an_error(config: CxxConfig) -> None:
    predictor = create_paddle_predictor(config)
    assert predictor.get_version().startswith("v2.14")
    for name, given in (
        ("get_input", 1),
        ("get_output", -1),
        ("get_input_by_name", "z"),
        ("get_output_by_name", "x"),
    ):
        with pytest.raises(InputError, match=r"there is no (in|out)put"):
            getattr(predictor, name)(given)


def test_elements_that_do_not_fit_are_an_error(config: CxxConfig) -> None:
    predictor: Any = create_paddle_predictor(config)
    given = predictor.get_input(0)
    with pytest.raises(InputError, match="'x' has no elements"):
        predictor.run()
    with pytest.raises(InputError, match="list is no array"):
        given.from_numpy([1.0])
    with pytest.raises(InputError, match="complex64 is given"):
        given.from_numpy(X.astype(np.complex64))
    given.resize([2, 3])
    with pytest.raises(InputError, match=r"5 elements are given for the shape \[2, 3\]"):
        given.set_float_data([1.0] * 5)
    for name, dtype in (("int8", np.int8), ("uint8", np.uint8), ("int32", np.int32)):
        getattr(given, f"set_{name}_data")([1, 2, 3, 4, 5, 6])
        assert getattr(given, f"{name}_data")() == [1, 2, 3, 4, 5, 6]
        assert given.numpy().dtype == dtype
        with pytest.raises(InputError, match="not float32"):
            given.float_data()
    with pytest.raises(Error, match="x"):
        predictor.run()  # of integers, where the model takes reals
