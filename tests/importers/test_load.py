"""Models from wherever callers have them."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser
from tests.modelling import ROOT

import crosschip
from crosschip.ir import InputError, ModelFileError

PADDLE = ROOT / "build" / "models" / "layouts"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 102489783\n"
X = np.array([[1, -2]], np.float32)


def proto() -> onnx.ModelProto:
    return parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        model (float[batch, 2] x) => (float[batch, 2] y) { y = Relu(x) }""")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(proto().SerializeToString())
    return path


class PathLike:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return str(self._path)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "str": str,
    "Path": lambda path: path,
    "os.PathLike": PathLike,
    "folder": lambda path: path.parent,
    "bytes": lambda path: path.read_bytes(),
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "ModelProto": lambda path: onnx.load(path),
}


@pytest.mark.parametrize("what", SOURCES)
def test_a_model_from_anywhere(path: Path, what: str) -> None:
    assert str(crosschip.load(SOURCES[what](path))) == str(crosschip.load(path))


@pytest.mark.parametrize("what", SOURCES)
def test_compile_and_explain_take_what_load_takes(path: Path, what: str) -> None:
    with crosschip.compile(SOURCES[what](path), "reference", cache=False) as compiled:
        np.testing.assert_array_equal(compiled(X), [[1, 0]])
    decisions = crosschip.explain(SOURCES[what](path), "reference").decisions
    assert [decision.type for decision in decisions] == ["RELU"]


def test_a_model_from_an_open_file(path: Path) -> None:
    with path.open("rb") as file:
        assert str(crosschip.load(file)) == str(crosschip.load(path))
    with path.open("rb", buffering=0) as file:
        assert crosschip.explain(file, "reference").segments


def test_weights_of_a_model_in_memory() -> None:
    weights = np.random.default_rng(3).random(2**16).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [2**16])],
        [helper.make_tensor_value_info("y", 1, [2**16])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    for source in (model, model.SerializeToString()):
        with crosschip.compile(source, "reference", cache=False) as compiled:
            np.testing.assert_array_equal(compiled(np.zeros_like(weights)), weights)


def test_external_data_need_a_path(tmp_path: Path) -> None:
    tensor = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    model = proto()
    model.graph.node[0].input[0] = "w"
    model.graph.initializer.append(tensor)
    onnx.save_model(
        model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    with pytest.raises(ModelFileError, match=r"memory.*'w\.bin': can only be found .* from a path"):
        crosschip.load((tmp_path / "m.onnx").read_bytes())


def test_a_program_of_paddle_in_memory() -> None:
    for name in ("pdmodel/inference.pdmodel", "json/inference.json"):
        with pytest.raises(ModelFileError, match="parameters, which are in another file; give the"):
            crosschip.load((PADDLE / name).read_bytes())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "None is no model; give a path, bytes, a file"),
        (5, "5 is no model"),
        ([], "is no model"),
        (io.StringIO("text"), "not open for reading bytes; open it with mode 'rb'"),
        ("a\0b", "is no model"),
        (onnx.GraphProto(), "is no model"),
        (b"", "is empty"),
        (b"no model", "is damaged or not an ONNX model"),
        (b"\nno model", "damaged or of another version"),
        (b'{"no": "model"}', "is not a model file that an importer knows"),
        ("there/is/none.onnx", "there is no such file or folder"),
        ("x" * 5000, "File name too long"),
    ],
)
def test_what_is_no_model_is_refused(source: Any, reason: str) -> None:
    for use in (crosschip.load, crosschip.compile, crosschip.explain):
        if isinstance(source, io.StringIO):
            source.seek(0)
        with pytest.raises((InputError, ModelFileError), match=reason):
            use(source)


def test_a_folder_with_several_models(path: Path) -> None:
    other = path.with_name("other.onnx")
    other.write_bytes(path.read_bytes())
    with pytest.raises(ModelFileError, match=r"2 ONNX models: model\.onnx, other\.onnx; name one"):
        crosschip.load(path.parent)
    other.unlink()
    program = PADDLE / "pdmodel" / "inference.pdmodel"
    (path.parent / program.name).write_bytes(program.read_bytes())
    with pytest.raises(ModelFileError, match="has models for onnx and paddle; name the file"):
        crosschip.load(path.parent)


@pytest.mark.parametrize("name", ["m.onnx", "m.pdmodel", "m.json", "__model__", "readme.md"])
def test_a_pointer_of_git_lfs(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(ModelFileError, match=f"{name}: .*is a Git LFS pointer.*`git lfs pull`"):
        crosschip.load(tmp_path / name)


def test_parameters_that_are_a_pointer_of_git_lfs(models: Path, tmp_path: Path) -> None:
    program = (models / "layouts" / "pdmodel" / "inference.pdmodel").read_bytes()
    (tmp_path / "m.pdmodel").write_bytes(program)
    (tmp_path / "m.pdiparams").write_bytes(POINTER)
    with pytest.raises(ModelFileError, match=r"m\.pdiparams: .*is a Git LFS pointer"):
        crosschip.load(tmp_path / "m.pdmodel")


@pytest.mark.skipif(os.getuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(path: Path) -> None:
    path.chmod(0)
    with pytest.raises(ModelFileError, match="Permission denied"):
        crosschip.load(path)


def test_looking_at_a_source_imports_no_onnx() -> None:
    script = (
        "import sys, crosschip\n"
        "try: crosschip.load(object())\n"
        "except crosschip.Error: print('onnx' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("size", [3, (3,), [3]])
def test_a_size_by_its_name(path: Path, size: Any) -> None:
    placement = crosschip.explain(path, "reference", shapes={"batch": size})
    assert placement.model.inputs["x"].type.static_shape == (3, 2)


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ({"n": 3}, "has no input 'n'; its inputs are x, its open sizes batch"),
        ({"x": 3}, "3 is not a shape for 'x'; give one like"),
        ({"batch": [3, 2]}, r"\[3, 2\] is not the size 'batch'; give one like 3"),
        ({"batch": -1}, r"\[-1\] is not the size 'batch'"),
        ({"batch": "3"}, "'3' is not the size 'batch'"),
        ({"batch": 3, "x": (4, 2)}, r"'x' has shape \[4, 2\].* where \{'batch': 3\}"),
        ([3, 2], r"shapes is \[3, 2\], but must be like"),
        ("batch=1", "shapes is 'batch=1', but must be like"),
    ],
)
def test_sizes_that_do_not_fit(path: Path, shapes: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        crosschip.explain(path, "reference", shapes=shapes)


def test_a_size_and_a_shape_together(path: Path) -> None:
    placement = crosschip.explain(path, "reference", shapes={"batch": 3, "x": (3, 2)})
    assert placement.model.inputs["x"].type.static_shape == (3, 2)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"threads": "2"}, "threads is '2', but must be an integer of at least 1"),
        ({"threads": 1.5}, "threads is 1.5"),
        ({"threads": True}, "threads is True"),
        ({"precision": 3}, "there is no precision 3; there are float32"),
        ({"devices": None}, "devices is None, but must be names"),
        ({"devices": 5}, "devices is 5"),
        ({"devices": ["reference", 5]}, "devices is .*5.*but must be names"),
        ({"properties": [1]}, r"properties is \[1\], but must be texts by name, by device"),
        ({"properties": {"reference": 5}}, "properties is .*must be texts"),
        ({"properties": {"reference": {"a": 5}}}, "properties is .*must be texts"),
        ({"properties": {5: {}}}, "properties is .*must be texts"),
        ({"budget": "1 GB"}, "budget is '1 GB', but must be a crosschip.Budget"),
    ],
)
def test_arguments_that_do_not_fit(path: Path, arguments: dict[str, Any], reason: str) -> None:
    given = {"devices": "reference", "cache": False, **arguments}
    with pytest.raises(InputError, match=reason):
        crosschip.compile(path, **given)
