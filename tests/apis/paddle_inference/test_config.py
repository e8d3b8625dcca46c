"""What a configuration chooses, accepts and refuses."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crosschip.apis import paddle_inference as inference
from crosschip.apis.paddle.ignored import IgnoredSettings, ignored_methods
from crosschip.apis.paddle_inference import Config, PrecisionType
from crosschip.apis.paddle_inference import ignored as ignored_settings
from crosschip.ir import Array, Error, InputError, UnsupportedError
from crosschip.runtime.cache import background_writer

X = np.linspace(-1, 1, 3 * 16 * 16, dtype=np.float32).reshape(1, 3, 16, 16)


@pytest.fixture
def files(models: Path) -> tuple[str, str]:
    folder = models / "layouts" / "pdmodel"
    return str(folder / "inference.pdmodel"), str(folder / "inference.pdiparams")


@pytest.fixture(autouse=True)
def _reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Config, "devices", ["reference"])


def run(config: Config, x: Array = X) -> Array:
    predictor = inference.create_predictor(config)
    (name,) = predictor.get_input_names()
    predictor.get_input_handle(name).copy_from_cpu(x)
    predictor.run()
    (made,) = predictor.get_output_names()
    return predictor.get_output_handle(made).copy_to_cpu()


def test_a_model_is_named_in_every_way_that_paddle_has(
    models: Path, files: tuple[str, str], tmp_path: Path
) -> None:
    expected = run(Config(*files))
    contents = [Path(file).read_bytes() for file in files]
    renamed = [str(tmp_path / name) for name in ("program", "weights")]
    for file, name in zip(files, renamed, strict=True):
        shutil.copy(file, name)
    one_by_one, from_memory, copied = Config(), Config(), Config(Config(*files))
    one_by_one.set_prog_file(files[0])
    one_by_one.set_params_file(files[1])
    program, parameters = contents
    from_memory.set_model_buffer(
        program + b"rest", len(program), parameters + b"rest", len(parameters)
    )
    layouts = models / "layouts"
    for config in (
        one_by_one,
        from_memory,
        copied,
        Config(*renamed),
        Config(str(layouts / "pdmodel")),
        Config(str(layouts / "pdmodel"), "inference"),
        Config(str(layouts / "json"), "inference"),
        Config(str(layouts / "separate")),
        Config(str(layouts / "combined" / "__model__"), str(layouts / "combined" / "__params__")),
    ):
        np.testing.assert_allclose(run(config), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("given", [(), ("/nowhere",), ("/nowhere/a", "/nowhere/b")])
def test_a_model_that_is_not_there_is_an_error(given: tuple[str, ...]) -> None:
    with pytest.raises(Error, match=r"names no model|No such file"):
        inference.create_predictor(Config(*given))


def test_parameters_of_another_program_are_an_error(models: Path, files: tuple[str, str]) -> None:
    content = Path(files[1]).read_bytes()
    config = Config()
    program = Path(files[0]).read_bytes()
    config.set_model_buffer(program, len(program), content, len(content) - 4)
    with pytest.raises(Error, match="the parameters in memory: parameter"):
        inference.create_predictor(config)


def test_settings_without_meaning_are_accepted_and_said_once(
    files: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    ignored = IgnoredSettings(logging.getLogger("crosschip.paddle_inference"))

    @ignored_methods(ignored, ignored_settings.METHODS, ignored_settings.REASONS)
    class Settings(Config):
        pass

    settings = Settings(*files)
    for name, parameters in ignored_settings.METHODS.items():
        for _ in range(2):
            getattr(settings, name)(*[() for default in parameters.values() if default is ...])
        assert [name] == [record.args[0] for record in caplog.records]  # type: ignore[index]
        caplog.clear()
    np.testing.assert_array_equal(run(settings), run(Config(*files)))


def test_arguments_that_a_setting_does_not_have_are_refused() -> None:
    for arguments in [(), (1, 2)]:
        with pytest.raises(InputError, match="delete_pass"):
            Config().delete_pass(*arguments)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("enable_mkldnn_int8", ()),
        ("enable_onednn_int8", ({"conv2d"},)),
        ("enable_low_precision_io", ()),
        ("enable_use_gpu", (100, 0, PrecisionType.Int8)),
        ("enable_tensorrt_engine", (1 << 30, 1, 3, PrecisionType.Int8)),
        ("enable_custom_device", ("reference", 0, PrecisionType.Int8)),
        ("enable_openvino_engine", (PrecisionType.Int8,)),
        ("enable_lite_engine", (Config.Int8,)),
        ("enable_quantizer", ()),
    ],
)
def test_what_would_change_results_is_refused(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(UnsupportedError, match=name):
        getattr(Config(), name)(*arguments)


def test_files_of_another_arithmetic_are_not_written() -> None:
    with pytest.raises(UnsupportedError, match=r"convert_to_mixed_precision: .* Config chooses"):
        inference.convert_to_mixed_precision("a", "b", "c", "d", PrecisionType.Half, 1)


def test_an_engine_that_is_not_here_leaves_its_arithmetic(files: tuple[str, str]) -> None:
    config = Config(*files)
    config.enable_lite_engine(Config.Float32, True, [], ["conv2d"])
    np.testing.assert_array_equal(run(config), run(Config(*files)))


def test_one_arithmetic_for_listed_operators_only_is_refused(files: tuple[str, str]) -> None:
    config = Config(*files)
    config.set_bfloat16_op({"softmax"})
    run(config)
    config.enable_mkldnn_bfloat16()
    with pytest.raises(UnsupportedError, match="set_bfloat16_op: all operators compute in bfloat"):
        inference.create_predictor(config)


@pytest.mark.slow
def test_operators_are_kept_in_float32(files: tuple[str, str]) -> None:
    """All of them: as without; what is enabled besides is not kept."""
    config = Config(*files)
    config.enable_custom_device("xla")
    exact = run(config)
    types = {o.type for o in sources(config)}
    config.enable_custom_device("xla", 0, PrecisionType.Bfloat16)
    rough = run(config)
    assert not np.array_equal(rough, exact)
    config.exp_disable_mixed_precision_ops(types)
    np.testing.assert_array_equal(run(config), exact)
    config.exp_enable_mixed_precision_ops(types)
    np.testing.assert_array_equal(run(config), rough)
    with pytest.raises(InputError, match="exp_disable_mixed_precision_ops: 3 is no operator's"):
        config.exp_disable_mixed_precision_ops([3])  # type: ignore[list-item]


def sources(config: Config) -> list[Any]:
    """The operators of a configuration's file."""
    model = inference.create_predictor(config)._session.compiled.placement.original
    return [origin for operation in model.operations for origin in operation.origins]


def test_arithmetic_threads_and_the_cache_are_what_was_set(
    files: tuple[str, str], tmp_path: Path
) -> None:
    config = Config(*files)
    config.set_cpu_math_library_num_threads(3)
    config.set_optim_cache_dir(str(tmp_path / "cache"))
    config.enable_tensorrt_engine(precision_mode=PrecisionType.Half)
    arguments = config.arguments()
    assert (arguments["threads"], arguments["precision"]) == (3, "float16")
    assert config.tensorrt_precision_mode() is PrecisionType.Half
    config.enable_custom_device("reference")
    run(config)
    background_writer.wait()
    assert any((tmp_path / "cache").iterdir())
    config.set_cpu_math_library_num_threads(0)
    assert config.arguments()["threads"] is None


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_an_engine_is_the_device_that_runs(files: tuple[str, str], engine: str) -> None:
    config = Config(*files)
    if engine == "onnxruntime":
        config.enable_onnxruntime()
        assert config.onnxruntime_enabled()
    else:
        config.enable_openvino_engine()
        assert config.openvino_engine_enabled()
    predictor = inference.create_predictor(config)
    placement = predictor._session.compiled.placement
    assert {decision.device for decision in placement.decisions} == {engine}
    np.testing.assert_allclose(run(config), run(Config(*files)), rtol=1e-4, atol=1e-6)


def test_a_device_that_is_not_there_is_an_error(files: tuple[str, str]) -> None:
    config = Config(*files)
    config.enable_custom_device("npu_of_nobody")
    with pytest.raises(Error, match="npu_of_nobody"):
        inference.create_predictor(config)


def test_the_summary_has_what_was_chosen(files: tuple[str, str]) -> None:
    config = Config(*files)
    config.set_cpu_math_library_num_threads(2)
    assert f"prog_file: {files[0]}\n" in config.summary()
    assert "threads: 2\n" in config.summary()


def test_paddle_is_found_after_one_line_and_only_for_inference() -> None:
    program = """
from crosschip.apis import paddle_inference
paddle_inference.install()
paddle_inference.install(devices="reference")
import paddle, paddle.inference as inference
from paddle.inference import Config
assert inference is paddle_inference is paddle.inference and Config.devices == "reference"
assert not paddle.is_compiled_with_cuda() and not paddle.device.is_compiled_with_rocm()
assert inference.get_version().startswith("version: " + paddle.__version__)
assert paddle.version.full_version == paddle.__version__
try:
    paddle.nn
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert "paddle.nn: crosschip stands for paddle.inference alone" in done.stdout


def test_paddle_itself_is_not_replaced_once_it_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "paddle", logging)
    with pytest.raises(InputError, match="imported already"):
        inference.install()
