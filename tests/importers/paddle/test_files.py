"""Discovery of a model's files, and memory mapping of its parameters."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.helpers import outputs
from tests.importers.paddle.writers import Paddle2Writer, Paddle3Writer, combined, record

from crosschip.importers import load, paddle
from crosschip.ir import Array, ElementType, Model, ModelFileError
from crosschip.ir.files import Stored

PROGRAMS = {
    "pdmodel": "inference.pdmodel",
    "combined": "__model__",
    "separate": "__model__",
    "json": "inference.json",
}


@pytest.mark.parametrize("layout", PROGRAMS)
def test_a_folder_and_its_program_are_the_same_model(models: Path, layout: str) -> None:
    folder = models / "layouts" / layout
    assert paddle.recognizes(folder)
    assert paddle.recognizes(folder / PROGRAMS[layout])
    assert str(load(folder)) == str(load(folder / PROGRAMS[layout]))


def test_all_layouts_compute_the_same(models: Path) -> None:
    x = np.linspace(-1, 1, 2 * 3 * 16 * 16, dtype=np.float32).reshape(2, 3, 16, 16)
    result = [outputs(load(models / "layouts" / layout), {"x": x})[0] for layout in PROGRAMS]
    for one in result[1:]:
        np.testing.assert_array_equal(one, result[0])


@pytest.mark.parametrize("name", ["model.onnx", "inference.pdiparams", "config.json", "x"])
def test_other_files_are_not_recognized(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"base_code": 1}')
    assert not paddle.recognizes(tmp_path / name)
    assert not paddle.recognizes(tmp_path)


def test_a_json_is_recognized_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "anything.json"
    path.write_text('{ "base_code": {"magic" : "pir"} }')
    assert paddle.recognizes(path)


def test_a_folder_with_two_models_asks_for_one(models: Path, tmp_path: Path) -> None:
    for layout in ("pdmodel", "json"):
        shutil.copytree(models / "layouts" / layout, tmp_path, dirs_exist_ok=True)
    with pytest.raises(ModelFileError, match=r"2 .*inference\.json, inference\.pdmodel; name one"):
        load(tmp_path)
    assert load(tmp_path / "inference.pdmodel").name == tmp_path.name


def test_the_old_layouts_are_called_by_their_folder(models: Path) -> None:
    assert load(models / "layouts" / "separate" / "__model__").name == "separate"


@pytest.mark.parametrize("layout", PROGRAMS)
def test_parameters_are_not_written_to(models: Path, layout: str) -> None:
    names = {file.name for file in (models / "layouts" / "separate").glob("*.?_?")}
    values = {c.name: c.value for c in load(models / "layouts" / layout).constants}
    assert len(names) == 8
    for name in names:
        value = values[name]
        assert value is not None
        assert not value.flags.writeable


def test_large_parameters_stay_in_the_file(models: Path) -> None:
    program = models / "paddle2" / "mobilenet_v1" / "inference.pdmodel"
    contents = [constant.content for constant in load(program).constants]
    held = [content for content in contents if isinstance(content, np.ndarray)]
    assert sum(content.nbytes for content in contents if isinstance(content, Stored)) > 2**23
    assert sum(content.nbytes for content in held) < 2**20


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_parameters_of_all_types(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    value = (np.arange(size) % 2).astype(dtype).reshape(shape)
    for writer in (Paddle2Writer(), Paddle3Writer()):
        number = writer.parameter("w", value)
        writer.output("w") if isinstance(writer, Paddle2Writer) else writer.output(number or 0)
        (result,) = load(writer.save(tmp_path)).outputs.values()
        assert result.type.element_type is ElementType(dtype)
        assert result.value is not None
        np.testing.assert_array_equal(result.value, value)


def two_parameters() -> tuple[Paddle2Writer, dict[str, Array]]:
    """A model that adds two parameters of the same type, `z.a` and `a.b`."""
    writer = Paddle2Writer()
    values = {"z.a": np.array([1, 2], np.float32), "a.b": np.array([30, 40], np.float32)}
    for name, value in values.items():
        writer.parameter(name, value)
    writer.variable("y", "float32", [2])
    writer.operator("elementwise_sub", {"X": "z.a", "Y": "a.b"}, {"Out": "y"}, {"axis": -1})
    writer.output("y")
    return writer, values


def difference(model: Model) -> list[float]:
    return list(map(float, outputs(model, {})[0]))


def test_parameters_are_in_the_order_of_their_names(tmp_path: Path) -> None:
    writer, _ = two_parameters()
    assert difference(load(writer.save(tmp_path))) == [-29, -38]


def test_parameters_in_files_of_their_own(tmp_path: Path) -> None:
    writer, values = two_parameters()
    (tmp_path / "__model__").write_bytes(writer.program.SerializeToString())
    for name, value in values.items():
        (tmp_path / name).write_bytes(record(value))
    assert difference(load(tmp_path)) == [-29, -38]


def test_a_file_of_all_parameters_comes_before_files_of_their_own(tmp_path: Path) -> None:
    writer, values = two_parameters()
    (tmp_path / "__model__").write_bytes(writer.program.SerializeToString())
    (tmp_path / "__params__").write_bytes(combined(values))
    assert difference(load(tmp_path)) == [-29, -38]


def test_a_model_without_parameters_needs_no_file_for_them(tmp_path: Path) -> None:
    writer = Paddle2Writer()
    writer.input("x", "float32", [2])
    writer.output("x")
    path = writer.save(tmp_path)
    path.with_suffix(".pdiparams").unlink()
    assert list(load(path).outputs) == ["x"]


def test_importing_the_importer_is_cheap() -> None:
    code = "import sys, crosschip.importers.paddle; print('google.protobuf' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_is_as_before(models: Path, tmp_path: Path, enabled: bool) -> None:
    (tmp_path / "inference.pdmodel").write_bytes(b"damaged")
    was_enabled = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        load(models / "layouts" / "json")
        assert gc.isenabled() is enabled
        with pytest.raises(ModelFileError):
            load(tmp_path)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()
