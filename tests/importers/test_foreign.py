"""What no importer reads is named by its content or its class, with the way to what one reads."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
import pytest
from onnx import parser

import crosschip
from crosschip.cli import run
from crosschip.importers.foreign import FORMATS
from crosschip.ir import InputError, ModelFileError

MODEL = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
    g (float[batch, 2] x) => (float[batch, 2] y) { h = Relu(x) y = Sigmoid(h) }""")


def zipped(*members: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for member in members:
                archive.writestr(member, b"content")

    return write


def content(written: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(written)

    return write


def folder(*members: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        for member in members:
            (path / member).parent.mkdir(parents=True, exist_ok=True)
            (path / member).write_bytes(b"content")

    return write


def write_ort(path: Path) -> None:
    """Return a model in ONNX Runtime's own format, written by ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(MODEL.SerializeToString(), options)


def write_ir(path: Path) -> None:
    """Return a model in OpenVINO's own format, written by OpenVINO."""
    openvino.save_model(openvino.Core().read_model(MODEL.SerializeToString()), path)


def write_safetensors(path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))


FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "saved": (folder("saved_model.pb", "variables/x"), "tf2onnx.convert --saved-model {path} "),
    "net.keras": (
        zipped("metadata.json", "config.json", "model.weights.h5"),
        'load_model("{path}"), example_inputs=',
    ),
    "net.h5": (
        content(b"\x89HDF\r\n\x1a\n" + bytes(40)),
        "crosschip.load(keras.models.load_model(",
    ),
    "net.mlir": (content(b"ML\xefR\x0dStableHLO_v1.8.0"), "jax2onnx.to_onnx(function, "),
    "net.stablehlo": (
        content(b"module @jit_f { func.func public @main() { stablehlo.return } }"),
        "jax2onnx.to_onnx(function, ",
    ),
    "net.ms": (content(b"\x20\0\0\0MSL2" + bytes(40)), "mindspore.export(network, "),
    "net.mindir": (content(b"\x0a\x050.1.0" + bytes(40)), "mindspore.export(network, "),
    "net.pt": (
        zipped("net/data.pkl", "net/code/__torch__.py", "net/constants.pkl", "net/version"),
        'torch.jit.load("{path}")',
    ),
    "net.jit": (zipped("net/data.pkl", "net/constants.pkl"), 'torch.jit.load("{path}")'),
    "weights.pth": (zipped("archive/data.pkl", "archive/data/0"), "holds weights and no network"),
    "old.pt": (content(b"\x80\x02\x8a\nl\xfc"), "holds weights and no network"),
    "net.safetensors": (write_safetensors, "holds weights and no network"),
    "checkpoint": (folder("config.json", "model.safetensors"), "optimum-cli export onnx"),
    "net.gguf": (content(b"GGUF\3\0\0\0" + bytes(40)), "optimum-cli export onnx"),
    "net.ort": (write_ort, "r.InferenceSession('{path}', o)"),
    "net.xml": (write_ir, "OpenVINO's own format (IR)"),
    "net.mlpackage": (folder("Manifest.json", "Data/com.apple.CoreML/m"), "torch.onnx.export("),
    "net.mlmodel": (content(b"\x08\x04\x12\x10" + bytes(40)), "torch.onnx.export("),
    "net.pdiparams": (content(bytes(64)), "give the .pdmodel or the .json beside it"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_named_with_its_conversion(tmp_path: Path, name: str) -> None:
    write, advice = FILES[name]
    path = tmp_path / name
    write(path)
    with pytest.raises(ModelFileError) as caught:
        crosschip.load(path)
    assert str(caught.value).startswith(f"{path}: is a")
    assert "which crosschip does not read" in str(caught.value)
    assert advice.format(path=path) in str(caught.value)
    with pytest.raises(ModelFileError) as compiling:
        crosschip.compile(path, "reference")
    assert str(compiling.value) == str(caught.value)


BY_CONTENT = ["net.keras", "net.pt", "net.ms", "net.safetensors", "net.gguf"]


@pytest.mark.parametrize("name", [*BY_CONTENT, "net.ort", "net.xml"])
def test_content_counts_and_not_the_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    FILES[name][0](path)
    for source in (path.read_bytes(), path.rename(tmp_path / "renamed.onnx")):
        with pytest.raises(ModelFileError, match="which crosschip does not read"):
            crosschip.load(source)


def test_a_damaged_onnx_model_beside_weights_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08\x08\xff")
    write_safetensors(tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError, match=r"model\.onnx: is damaged"):
        crosschip.load(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"TFL3", b"<?xml version='1.0'?><a/>"])
def test_what_is_nothing_that_is_known_is_told_as_before(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "thing"
    path.write_bytes(damage)
    with pytest.raises(ModelFileError, match="is not a model file that an importer knows"):
        crosschip.load(path)


@pytest.mark.slow  # a process that imports ONNX Runtime
def test_the_conversion_of_onnx_runtimes_own_format_runs(tmp_path: Path) -> None:
    path = tmp_path / "net.ort"
    write_ort(path)
    with pytest.raises(ModelFileError) as caught:
        crosschip.load(path)
    command = str(caught.value).partition("convert it: python ")[2]
    subprocess.run(f"{sys.executable} {command}", shell=True, cwd=tmp_path, check=True)
    x = np.array([[1, -2]], np.float32)
    (expected,) = onnxruntime.InferenceSession(MODEL.SerializeToString()).run(None, {"x": x})
    with crosschip.compile(tmp_path / "model.onnx", "reference", cache=False) as compiled:
        np.testing.assert_allclose(compiled(x), expected, rtol=1e-6)


def instance_of(module: str, name: str) -> Any:
    """Return an object of a class that derives from a framework's, as its name and module tell."""
    base = type(name, (), {"__module__": module})
    return type("Mine", (base,), {"__module__": "mine"})()


@pytest.mark.parametrize(
    ("module", "name", "advice"),
    [
        ("torch.jit._script", "ScriptModule", "dynamo=False"),
        ("jaxlib._jax", "PjitFunction", "jax2onnx.to_onnx(function, "),
        ("flax.nnx.module", "Module", "jax2onnx.to_onnx(function, "),
        ("jax._src.export._export", "Exported", "jax2onnx.to_onnx(function, "),
        ("keras.src.models.model", "Model", 'model.export("model.onnx", format="onnx")'),
        ("paddle.nn.layer.layers", "Layer", "paddle.jit.save(layer"),
        ("sklearn.base", "BaseEstimator", "skl2onnx.to_onnx(estimator"),
    ],
)
def test_an_object_is_named_by_its_class(module: str, name: str, advice: str) -> None:
    with pytest.raises(InputError, match="the Mine that was given is a") as caught:
        crosschip.load(instance_of(module, name))
    assert advice in str(caught.value)


def test_objects_of_engines_are_named() -> None:
    model = openvino.Core().read_model(MODEL.SerializeToString())
    with pytest.raises(InputError, match="the Model that was given is a model of OpenVINO"):
        crosschip.compile(model, "reference")
    session = onnxruntime.InferenceSession(MODEL.SerializeToString())
    with pytest.raises(InputError, match=r"is a session of ONNX Runtime.*give the \.onnx file"):
        crosschip.load(session)


def test_the_command_line_says_so_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FILES["saved"][0](tmp_path / "saved")
    assert run(["run", str(tmp_path / "saved")]) == 1
    assert "error: " in (captured := capsys.readouterr()).err
    assert "tf2onnx.convert --saved-model" in captured.err


def test_pasted_paths_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "my net"
    FILES["saved"][0](path)
    with pytest.raises(ModelFileError, match=f"--saved-model '{path}' --output"):
        crosschip.load(path)


def test_reading_a_model_does_not_import_the_table(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(MODEL, path)
    program = textwrap.dedent(f"""
        import sys, crosschip
        crosschip.load({str(path)!r})
        assert "crosschip.importers.foreign" not in sys.modules
    """)
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_format_says_what_to_do() -> None:
    for each in FORMATS:
        assert each.conversion or each.advice, each.name
