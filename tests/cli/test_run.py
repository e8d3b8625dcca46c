"""`crosschip run`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import parser
from tests.cli.conftest import Crosschip, expected
from tests.modelling import close

from crosschip.ir import Array

SHAPE = ("--shape", "image=2x3x5x8")
PLAIN = ("--devices", "reference", "--no-cache")


def test_the_document_says_what_ran_where(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("run", model, *PLAIN, *SHAPE, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    report = outcome.document
    assert set(report) >= {"outputs", "segments", "latency_ms", "compile_ms", "cache"}
    assert report["outputs"] == [
        {"name": "[bold]概率", "shape": [2, 2], "dtype": "float32", "file": None},
        {"name": "r", "shape": [2, 2, 5, 8], "dtype": "float32", "file": None},
    ]
    assert report["segments"] == [{"device": "reference", "operations": 6}]
    assert report["cache"] == "off"
    assert report["latency_ms"] > 0
    assert report["compile_ms"] > 0


def test_files_in_and_files_out(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    inputs = {
        "image": generator.random((2, 3, 4, 8), np.float32),
        "shift": generator.random((2, 2), np.float32),
    }
    for name, array in inputs.items():
        np.save(tmp_path / f"{name}=1.npy", array)
    given = [part for n in inputs for part in ("--input", f"{n}={tmp_path / n}=1.npy")]
    outcome = crosschip("run", model, *PLAIN, *given, "--save", tmp_path / "out" / "deep", "--json")
    assert outcome.status == 0
    saved = outcome.document["outputs"]
    assert [Path(output["file"]).name for output in saved] == ["0-_bold_概率.npy", "1-r.npy"]
    for output, array in zip(saved, expected(inputs), strict=True):
        close(np.load(output["file"]), array)


def test_maps_come_out_as_json(crosschip: Crosschip, tmp_path: Path) -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 20, "ai.onnx.ml" : 3]> '
        "g (float[N, 2] x) => (float[N, 2] y, seq(map(int64, float)) scores) "
        "{ y = Neg(x)  scores = ai.onnx.ml.ZipMap<classlabels_int64s = [5, 7]>(x) }"
    )
    model = tmp_path / "maps.onnx"
    model.write_bytes(proto.SerializeToString())
    np.save(tmp_path / "x.npy", np.array([[0.5, -1], [2, 0]], np.float32))
    given = ("--devices", "onnxruntime", "--no-cache", "--input", f"x={tmp_path / 'x.npy'}")
    outcome = crosschip("run", model, *given, "--save", tmp_path / "out", "--json")
    assert outcome.status == 0
    tensor, scores = outcome.document["outputs"]
    assert (tensor["shape"], Path(tensor["file"]).name) == ([2, 2], "0-y.npy")
    assert (scores["shape"], scores["dtype"]) == (None, "object")
    written = Path(scores["file"])
    assert written.name == "1-scores.json"
    assert json.loads(written.read_text()) == [{"5": 0.5, "7": -1.0}, {"5": 2.0, "7": 0.0}]
    assert "list of 2" in crosschip("run", model, *given).out


def test_text_in_and_text_out(crosschip: Crosschip, tmp_path: Path) -> None:
    proto = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 20]> '
        "g (string[N, 2] x, string[2] tail) => (string[N, 2] y) { y = StringConcat(x, tail) }"
    )
    model = tmp_path / "text.onnx"
    model.write_bytes(proto.SerializeToString())
    np.save(tmp_path / "x.npy", np.array([["a", "日本"]]))
    command = ("run", model, "--devices", "onnxruntime", "--no-cache")
    given = ("--input", f"x={tmp_path / 'x.npy'}", "--save", tmp_path / "out", "--seed", "5")
    outcome = crosschip(*command, *given, "--json")
    assert outcome.status == 0
    (output,) = outcome.document["outputs"]
    assert (output["dtype"], output["shape"]) == ("string", [1, 2])
    (texts,) = np.load(output["file"]).tolist()
    assert texts[0].startswith("a")
    assert texts[1].startswith("日本")
    assert len(texts[0]) > 1
    assert "string" in crosschip(*command).out

    np.save(tmp_path / "x.npy", np.zeros((1, 2), np.float32))
    outcome = crosschip(*command, *given)
    assert outcome.status == 1
    assert "'x' is float32, but the model takes string[" in " ".join(outcome.err.split())


def test_one_input_from_a_file_says_how_large_the_other_is(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "shift.npy", np.zeros((5, 2), np.float32))
    shift = ("--input", f"shift={tmp_path / 'shift.npy'}")
    outcome = crosschip("run", model, *PLAIN, *shift, "--shape", "image=5x3x1x8", "--json")
    assert outcome.document["outputs"][0]["shape"] == [5, 2]


def test_a_file_in_another_order_of_elements_or_bytes_will_do(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    image = np.random.default_rng(0).random((1, 3, 4, 8), np.float32)
    shift = np.zeros((1, 2), np.float32)
    np.save(tmp_path / "image.npy", np.asfortranarray(image).astype(">f4"))
    np.save(tmp_path / "shift.npy", shift)
    given = [part for n in ("image", "shift") for part in ("--input", f"{n}={tmp_path / n}.npy")]
    outcome = crosschip("run", model, *PLAIN, *given, "--save", tmp_path, "--json")
    (probabilities, _) = expected({"image": image, "shift": shift})
    close(np.load(outcome.document["outputs"][0]["file"]), probabilities)


def test_the_same_seed_gives_the_same_results(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    def results(folder: str, *seed: str) -> list[bytes]:
        crosschip("run", model, *PLAIN, *SHAPE, *seed, "--save", tmp_path / folder)
        return [path.read_bytes() for path in sorted((tmp_path / folder).iterdir())]

    seven = results("a", "--seed", "7")
    assert len(seven) == 2
    assert results("b", "--seed", "7") == seven
    assert results("c", "--seed", "8") != seven
    assert results("d") == results("e", "--seed", "0")


def test_people_get_tables(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    outcome = crosschip("run", model, *PLAIN, *SHAPE, "--save", tmp_path)
    assert outcome.status == 0
    for text in ("[bold]概率", "[2, 2, 5, 8]", "float32", "reference", "cache: off"):
        assert text in outcome.out


def test_the_cache_is_used_where_it_is_said_to_be(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    def word() -> str:
        arguments = ("--devices", "reference", *SHAPE, "--cache-dir", tmp_path, "--json")
        return str(crosschip("run", model, *arguments).document["cache"])

    assert [word(), word()] == ["miss", "hit"]


def test_a_long_path_leaves_room_for_the_rest(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / ("long" * 30)
    outcome = crosschip("run", model, *PLAIN, *SHAPE, "--save", folder)
    for text in ("[bold]概率", "[2, 2]", "float32", "reference"):
        assert text in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*PLAIN, *SHAPE, "--devices", "nosuch"], "there is no device 'nosuch'; installed are: "),
        ([*PLAIN, *SHAPE, "--devices", ""], "there is no device ''"),
        ([*PLAIN], "input 'image' is float32[N, 3, H, 8], which leaves sizes open; say which, as"),
        ([*PLAIN, "--shape", "picture=1x3x4x8"], "no input 'picture'; its inputs are image, shift"),
        ([*PLAIN, "--shape", "image=1x4x4x8"], "input 'image' has shape [1, 4, 4, 8], but the"),
        ([*PLAIN, *SHAPE, "--shape", "shift=3x2"], "input 'shift' has shape [3, 2], but the"),
        ([*PLAIN, "--shape", "image=1x3x999999999999x8"], "input 'image' of shape"),
        ([*PLAIN, *SHAPE, "--precision", "float8"], "there is no precision 'float8'"),
        (
            [*PLAIN, *SHAPE, "--precision", "float16"],
            "computes in float32, not in float16",
        ),
        ([*PLAIN, "--input", "image=nothing.npy"], "nothing.npy: cannot be read as an .npy file"),
        (["--devices", "reference", *SHAPE], "cache folder /dev/null/no cache in tests: cannot be"),
        ([*PLAIN, *SHAPE, "--save", "/dev/null/out"], "--save /dev/null/out: cannot be written to"),
    ],
)
def test_what_does_not_fit_is_an_error_with_status_1(
    crosschip: Crosschip, model: Path, arguments: list[str], message: str
) -> None:
    outcome = crosschip("run", model, *arguments, "--json")
    assert outcome.status == 1
    assert outcome.err == f"error: {outcome.document['error']}\n"
    assert message in outcome.err
    assert "Traceback" not in outcome.err


def test_an_input_file_that_does_not_fit_is_an_error(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    wrong: dict[str, Array] = {
        "shape": np.zeros((1, 3), np.float32),
        "type": np.zeros((1, 3, 4, 8), np.float64),
        "objects": np.array([None], object),
    }
    for name, array in wrong.items():
        np.save(tmp_path / f"{name}.npy", array)
        outcome = crosschip("run", model, *PLAIN, "--input", f"image={tmp_path / name}.npy")
        assert outcome.status == 1, name
        assert outcome.err.startswith("error: ")
    np.savez(tmp_path / "archive.npz", image=wrong["shape"])
    outcome = crosschip("run", model, *PLAIN, "--input", f"image={tmp_path / 'archive.npz'}")
    assert outcome.status == 1
    assert "cannot be read as an .npy file" in outcome.err


@pytest.mark.parametrize("content", [b"", b"\x08", b"{}", b"ONNX" * 100, None])
def test_a_model_file_that_is_none_is_an_error(
    crosschip: Crosschip, tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "model.onnx"
    if content is not None:
        path.write_bytes(content)
    for command in ("run", "explain", "bench"):
        outcome = crosschip(command, path)
        assert (outcome.status, outcome.out) == (1, "")
        assert outcome.err.startswith("error: ")
        assert "model.onnx" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "m.onnx", "n.onnx"],
        ["run", "m.onnx", "--nosuch"],
        ["run", "m.onnx", "--threads", "0"],
        ["run", "m.onnx", "--threads", "many"],
        ["run", "m.onnx", "--seed", "x"],
        ["run", "m.onnx", "--shape", "image"],
        ["run", "m.onnx", "--shape", "image=1x"],
        ["run", "m.onnx", "--shape", "image=1,3"],
        ["run", "m.onnx", "--shape", "=1x3"],
        ["run", "m.onnx", "--shape", "image=-1x3"],
        ["run", "m.onnx", "--shape", "image=1.5"],
        ["cache"],
        ["cache", "nosuch"],
        ["cache", "clear", "--max-mb", "-1"],
        ["compile", "m.onnx"],
        ["bench", "m.onnx", "--runs", "0"],
        ["explain"],
        ["nosuch"],
        ["--nosuch"],
    ],
    ids=" ".join,
)
def test_wrong_usage_has_status_2(crosschip: Crosschip, arguments: list[str]) -> None:
    outcome = crosschip(*arguments)
    assert (outcome.status, outcome.out) == (2, "")
    assert "Usage: crosschip" in outcome.err


@pytest.mark.parametrize("argument", ["image", "image=", "=x.npy", ""])
def test_an_input_must_have_a_name_and_a_file(
    crosschip: Crosschip, model: Path, argument: str
) -> None:
    assert crosschip("run", model, "--input", argument).status == 2


CACHE = [f"cache {name}" for name in ("list", "verify", "clear", "path", "export", "import")]


@pytest.mark.parametrize(
    "command", ["run", "explain", "bench", "compile", "devices", "demo", *CACHE]
)
def test_every_command_explains_itself(crosschip: Crosschip, command: str) -> None:
    *group, name = command.split()
    for flag in ("-h", "--help"):
        outcome = crosschip(*group, name, flag)
        assert (outcome.status, outcome.err) == (0, "")
        assert f"Usage: crosschip {command}" in outcome.out
        assert "--json" in outcome.out
        assert f"  {name} " in crosschip(*group, "--help").out
