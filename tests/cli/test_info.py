"""`crosschip info` of files of each format, of folders, and of compiled models."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import helper
from tests.cli.conftest import Crosschip

import crosschip as cc
from crosschip.importers import file_metadata


def test_of_an_onnx_file(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("info", model, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    report = outcome.document
    assert report["file"] == str(model)
    assert report["metadata"]["format"].startswith("ONNX, IR version ")
    assert report["metadata"]["opset"].startswith("ai.onnx ")
    proto = onnx.load(model)
    assert [each["name"] for each in report["inputs"]] == [i.name for i in proto.graph.input]
    assert [each["name"] for each in report["outputs"]] == [o.name for o in proto.graph.output]
    assert report["operations"] == 6
    assert {each["type"]: each["operations"] for each in report["operators"]} == {
        "CONV_2D": 1, "RELU": 1, "ADAPTIVE_AVERAGE_POOL_2D": 1, "FLATTEN": 1, "ADD": 1,
        "SOFTMAX": 1,
    }  # fmt: skip
    assert isinstance(report["multiply_adds"], str)
    fixed = crosschip("info", model, "--shape", "image=2x3x5x8", "--json").document
    assert fixed["multiply_adds"] == 2 * 2 * 5 * 8 * 27
    assert fixed["open_sizes"] == []


def test_in_tables(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("info", model)
    assert outcome.status == 0
    for text in ("Inputs", "Open sizes", "CONV_2D", "bytes of weights", "--shape"):
        assert text in outcome.out


def test_what_the_file_says_about_itself(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    proto = onnx.load(model)
    proto.producer_name, proto.producer_version = "a \x1b[31mtool", "1.2"
    proto.domain, proto.model_version, proto.doc_string = "org.example", 7, "reads text\nin files"
    helper.set_model_props(proto, {"author": "[b]somebody", "keys": "x" * 5000})
    path = tmp_path / "described.onnx"
    onnx.save(proto, path)
    metadata = crosschip("info", path, "--json").document["metadata"]
    expected = {
        "producer": "a \x1b[31mtool 1.2",
        "domain": "org.example",
        "model version": "7",
        "documentation": "reads text\nin files",
        "metadata author": "[b]somebody",
        "metadata keys": "x" * 5000,
    }
    assert expected.items() <= metadata.items()
    assert file_metadata(path.read_bytes()) == metadata
    shown = crosschip("info", path).out
    assert "\x1b" not in shown
    assert "[b]somebody" in shown
    assert max(map(len, shown.splitlines())) < 200


def test_of_a_folder_and_a_file_of_each_format(crosschip: Crosschip, models: Path) -> None:
    formats = {
        "paddle3/resnet50": "Paddle 3 (PIR), version",
        "ocr-paddle/ch_ppocr_mobile_v2_cls_infer": "Paddle 2 (ProgramDesc), written by Paddle 2.",
    }
    for name, start in formats.items():
        report = crosschip("info", models / name, "--json").document
        assert report["metadata"]["format"].startswith(start)
        assert report["parameters"] > 10_000


def test_of_compiled_and_saved_models(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    compiled, saved = tmp_path / "model.chips", tmp_path / "model.chipm"
    loaded = cc.load(model)
    with cc.compile(loaded, "onnxruntime", cache=False) as program:
        program.save(compiled)
    report = crosschip("info", compiled, "--json").document
    source = crosschip("info", model, "--json").document
    metadata = report["metadata"]
    assert metadata["format"] == f"compiled by crosschip {cc.__version__}"
    assert metadata["devices"].startswith("onnxruntime ")
    assert metadata["segments"] == "6 operations on onnxruntime"
    for field in ("inputs", "outputs", "operators", "parameters", "multiply_adds", "open_sizes"):
        assert report[field] == source[field]
    from crosschip.ops.definition.serialization import to_bytes

    saved.write_bytes(to_bytes(loaded))
    assert crosschip("info", saved, "--json").document["operators"] == source["operators"]


@pytest.mark.parametrize("content", [b"", b"nothing", b"\x08\x07"])
def test_errors(crosschip: Crosschip, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(content)
    outcome = crosschip("info", path)
    assert outcome.status == 1
    assert str(path) in outcome.err
    assert crosschip("info", tmp_path / "none.onnx").status == 1
    assert crosschip("info", path, "--shape", "x").status == 2
