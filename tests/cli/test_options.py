"""Options that several commands share, and what they say when something is amiss."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, parser
from tests.cli.conftest import Crosschip
from tests.importers.tflite.test_subgraphs import two_signatures

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Capabilities

SCRIPT = Path(sys.executable).with_name("crosschip")
PLAIN = ("--devices", "reference", "--no-cache")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A model that looks words up in a table of two, where a mask says so."""
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (int64[batch, words] ids, int64[batch, words] mask, float[batch, k] x)
            => (float[batch, words] y, float[batch, k] z)
        <float[2] t = {1, 2}, float nothing = {0}>
        { found = Gather(t, ids)  m = Cast<to = 9>(mask)  y = Where(m, found, nothing)
          r = Sqrt(x)  z = Neg(r) }""")
    path = tmp_path / "table.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


SHAPES = ("--shape", "batch=1", "--shape", "words=3", "--shape", "k=2")


@pytest.mark.parametrize("arguments", [("run", *PLAIN), ("bench", *PLAIN, "--runs", 2)])
def test_random_integers_are_in_range_of_any_table(
    crosschip: Crosschip, table: Path, arguments: tuple[str, ...]
) -> None:
    command, *others = arguments
    for seed in range(3):
        outcome = crosschip(command, table, *others, *SHAPES, "--seed", seed, "--json")
        assert (outcome.status, outcome.err) == (0, "")


def test_open_sizes_are_told_all_at_once(crosschip: Crosschip, table: Path) -> None:
    for command in ("run", "bench"):
        outcome = crosschip(command, table, *PLAIN)
        assert outcome.status == 1
        for name in ("ids", "mask", "x"):
            assert f"input {name!r} is " in outcome.err
        hint = "--shape batch=1 --shape words=128 --shape k=128"
        assert f"as in {hint} (in Python, " in outcome.err
        assert crosschip(command, table, *PLAIN, *hint.split()).status == 0


def test_sizes_without_names(crosschip: Crosschip, tmp_path: Path) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, 1, [None, 3, None]) for name in "xy"]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path = tmp_path / "unnamed.onnx"
    path.write_bytes(proto.SerializeToString())
    assert "as in --shape x=1x3x128 (in Python, " in crosschip("run", path, *PLAIN).err
    assert crosschip("run", path, *PLAIN, "--shape", "x=1x3x128").status == 0


def test_bench_takes_inputs(crosschip: Crosschip, table: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.array([[7, 7]]))
    given = ("--input", f"ids={tmp_path / 'ids.npy'}", "--shape", "k=1")
    outcome = crosschip("bench", table, *PLAIN, "--runs", 2, *given)
    assert outcome.status == 1
    assert "7" in outcome.err
    np.save(tmp_path / "ids.npy", np.array([[1, 1]]))
    assert crosschip("bench", table, *PLAIN, "--runs", 2, *given, "--json").status == 0


def test_what_is_not_finite_in_both_is_no_difference(
    crosschip: Crosschip, table: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.array([[-1, 4]], np.float32))
    outcome = crosschip(
        *("bench", table, "--devices", "onnxruntime", "--no-cache", "--runs", 2),
        *("--against", "onnxruntime", "--input", f"x={tmp_path / 'x.npy'}"),
        *("--shape", "words=3", "--json"),
    )
    assert outcome.document["against"]["onnxruntime"]["error"] == 0


def _without_cache(command: str) -> tuple[str, ...]:
    return () if command == "explain" else ("--no-cache",)


@pytest.mark.parametrize("command", ["run", "bench", "explain"])
def test_properties_reach_the_device(crosschip: Crosschip, table: Path, command: str) -> None:
    given = ("--devices", "openvino,reference", *SHAPES, *_without_cache(command))
    outcome = crosschip(command, table, *given, "--property", "openvino.nosuch=1")
    assert outcome.status == 1
    assert "has no property 'nosuch'" in outcome.err
    outcome = crosschip(command, table, *given, "--property", "other.device=1")
    assert outcome.status == 1
    assert "'other', which is not among the devices" in outcome.err


@pytest.mark.parametrize(
    "command",
    [
        ("ops", "ABS", "--devices", "openvino,reference"),
        ("demo", "--devices", "openvino,reference", "--no-cache"),
        ("conformance", "openvino", "--operator", "ABS", "--quick"),
    ],
)
def test_properties_without_a_model(crosschip: Crosschip, command: Sequence[str]) -> None:
    outcome = crosschip(*command, "--property", "openvino.nosuch=1")
    assert outcome.status == 1
    assert "has no property 'nosuch'" in outcome.err
    outcome = crosschip(*command, "--property", "other.device=1")
    assert outcome.status == 1
    assert "'other', which is not among the devices" in outcome.err
    assert "is not like mychip.cores=2" in crosschip(*command, "--property", "cores=2").err


def test_a_setting_for_the_kit(crosschip: Crosschip, tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    command = ("conformance", "onnxruntime", "--case", "ABS/0/plain", "--resume", journal)
    spinning = ("--property", "onnxruntime.spinning=0")
    assert crosschip(*command, *spinning, "--json").document["pass"] == 1
    assert crosschip(*command, *spinning, "--json").document["pass"] == 1
    outcome = crosschip(*command)
    assert outcome.status == 1
    assert "is of another run" in outcome.err


def test_options_for_the_kit(crosschip: Crosschip, tmp_path: Path) -> None:
    journal, config = tmp_path / "run.jsonl", tmp_path / "chip.toml"
    config.write_text('threads = 2\nperformance = "low"\n[properties.onnxruntime]\nspinning = 0\n')
    command = ("conformance", "onnxruntime", "--case", "ABS/0/plain", "--resume", journal, "--json")
    by_options = ("--performance", "low", "--property", "onnxruntime.spinning=0")
    found = crosschip(*command, "--config", config).document
    assert (found["pass"], found["properties"]) == (1, {"spinning": "0"})
    asked = {"precision": "float32", "threads": 2, "in_flight": 1, "performance": "low"}
    assert {name: found["options"][name] for name in asked} == asked
    again = crosschip(*command, "--threads", 2, *by_options)
    assert again.document == found
    outcome = crosschip(*command, "--config", config, "--threads", 1)
    assert outcome.status == 1
    assert "is of another run" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--precision", "float61"), "there is no precision 'float61'"),
        (("--performance", "hihg"), "there is no performance mode 'hihg' (did you mean 'high'?)"),
        (("--config", "no such file"), "no such file: cannot be read"),
    ],
)
def test_options_that_the_kit_does_not_know(
    crosschip: Crosschip, arguments: Sequence[str], message: str
) -> None:
    outcome = crosschip("conformance", "reference", "--case", "ABS/0/plain", *arguments)
    assert (outcome.status, message in outcome.err) == (1, True), outcome.err


@pytest.mark.parametrize("text", ["mychip", "mychip.cores", "cores=2", ".a=b", "a.=b"])
def test_what_is_no_property(crosschip: Crosschip, table: Path, text: str) -> None:
    outcome = crosschip("run", table, "--property", text)
    assert outcome.status == 2
    assert "is not like mychip.cores=2" in outcome.err


@pytest.mark.parametrize("command", ["run", "bench", "explain"])
def test_a_budget(crosschip: Crosschip, table: Path, command: str) -> None:
    others = ("--devices", "reference", *SHAPES, *_without_cache(command))
    given = (command, table, *others, "--budget")
    assert crosschip(*given, "seconds=99.5", "--budget", "operations=9", "--json").status == 0
    outcome = crosschip(*given, "tensor_bytes=8")
    assert outcome.status == 1
    assert "'ids' is int64[1, 3], which takes 24 bytes" in outcome.err
    for wrong in ("seconds", "operations=1.5", "other=1", "=1"):
        assert "is not like seconds=900" in crosschip(*given, wrong).err
    assert "budget: bytes is 0, but must be a number above 0" in crosschip(*given, "bytes=0").err


def test_the_version(crosschip: Crosschip) -> None:
    outcome = crosschip("--version")
    assert (outcome.status, outcome.out) == (0, f"crosschip {version('crosschip')}\n")


@pytest.mark.parametrize(
    ("given", "near"), [("CONV2D", "CONV_2D"), ("softmx", "SOFTMAX"), ("maxpool2d", "MAX_POOL_2D")]
)
def test_an_operator_that_was_meant(crosschip: Crosschip, given: str, near: str) -> None:
    outcome = crosschip("ops", given)
    assert outcome.status == 1
    assert f"there is no operator {given!r} (did you mean {near!r}" in outcome.err
    assert "did you mean" not in crosschip("ops", "xyzzy").err


def test_tables_that_are_piped_are_not_cut(tmp_path: Path) -> None:
    long = "a_name_that_is_longer_than_a_terminal_is_wide_" * 4
    proto = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] {long}) => (float[2] y) {{ y = Relu({long}) }}""")
    path = tmp_path / "long.onnx"
    path.write_bytes(proto.SerializeToString())
    command = [str(SCRIPT), "explain", str(path), "--devices", "reference"]
    out = subprocess.run(command, env={**os.environ, "COLUMNS": "80"}, capture_output=True).stdout
    assert long.encode() in out
    assert out.isascii()  # no lines are drawn


COMPILING = ("run", "explain", "bench", "profile")


@pytest.mark.parametrize("command", COMPILING)
def test_commands_that_compile_take_the_same_options(crosschip: Crosschip, command: str) -> None:
    help_ = crosschip(command, "--help").out
    for option in ("devices", "input", "shape", "threads", "precision", "performance", "property"):
        assert f"--{option} " in help_
    for option in ("config", "partition", "pin", "strict", "cache", "cache-dir", "budget"):
        assert f"--{option} " in help_


@pytest.mark.parametrize(
    ("signature", "result"), [("add", [3, 6]), ("multiply", [3, 12]), (None, [3, 6])]
)
def test_a_signature(
    crosschip: Crosschip, tmp_path: Path, signature: str | None, result: list[float]
) -> None:
    path, x = tmp_path / "model.tflite", tmp_path / "x.npy"
    path.write_bytes(two_signatures())
    np.save(x, np.array([1, 4], np.float32))
    option = () if signature is None else ("--signature", signature)
    shared = (path, *option, "--devices", "reference", "--no-cache", "--input", f"x={x}")
    outcome = crosschip("run", *shared, "--save", tmp_path, "--json")
    assert outcome.status == 0, outcome.err
    [output] = outcome.document["outputs"]
    np.testing.assert_array_equal(np.load(output["file"]), result)


@pytest.mark.parametrize("command", ["run", "explain", "info", "export"])
def test_a_signature_that_is_missing(crosschip: Crosschip, tmp_path: Path, command: str) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(two_signatures())
    more = ("-o", tmp_path / "model.onnx") if command == "export" else ()
    outcome = crosschip(command, path, "--signature", "divide", *more)
    assert outcome.status == 1
    assert "'divide'; the file's signatures: 'add', 'multiply'" in outcome.err


@pytest.mark.parametrize("command", COMPILING)
def test_a_configuration_in_a_file(
    crosschip: Crosschip, table: Path, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "crosschip.toml"
    path.write_text('precision = "float16"\n[properties.elsewhere]\nx = 1\n', "utf-8")
    arguments = (command, table, "--devices", "reference", "--no-cache", *SHAPES)
    assert crosschip(*arguments, "--config", path).status == 1  # `reference` has no float16
    assert crosschip(*arguments, "--config", path, "--precision", "float32").status == 0
    outcome = crosschip(*arguments, "--config", tmp_path / "missing.toml")
    assert (
        outcome.err
        == f"error: {tmp_path / 'missing.toml'}: cannot be read: No such file or directory\n"
    )


def test_explain_lists_what_engines_are_told(crosschip: Crosschip, table: Path) -> None:
    arguments = ("explain", table, "--devices", "onnxruntime,reference", "--performance", "low")
    told = crosschip(*arguments, "--json").document["settings"]
    assert told == {
        "onnxruntime": {"intra_op_num_threads": "1", "session.intra_op.allow_spinning": "0"},
        "reference": {"performance": None},
    }
    out = crosschip(*arguments).out
    assert "Settings of the engines" in out
    assert "nothing: its engine has no such modes" in out


@pytest.mark.parametrize("command", COMPILING)
def test_an_input_of_a_shape(crosschip: Crosschip, table: Path, command: str) -> None:
    given = ("--input", "ids=1x3", "--input", "x=1x2", "--input", "mask=1x3")
    assert crosschip(command, table, *PLAIN, *given, "--json").status == 0
    outcome = crosschip(command, table, *PLAIN, "--input", "x=1x2x3")
    assert outcome.status == 1
    assert "input 'x'" in outcome.err


def test_bench_says_what_is_no_number(crosschip: Crosschip, table: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[-1, np.inf, 4]], np.float32))
    given = (*PLAIN, "--runs", 2, "--input", f"x={tmp_path / 'x.npy'}", "--shape", "words=3")
    told = crosschip("bench", table, *given, "--json").document["not_finite"]
    assert told == {"z": {"nan": 1, "infinite": 1, "elements": 3}}
    out = crosschip("bench", table, *given).out
    assert "output 'z' has elements that are no numbers: 1 nan, 1 infinite of 3" in out
    assert "ratio to ours" not in out
    fine = crosschip("bench", table, *PLAIN, *SHAPES, "--runs", 2)
    assert "no number" not in fine.out


def test_bench_asks_for_threads_only_if_told(
    crosschip: Crosschip, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReferenceDevice, "capabilities", lambda _: Capabilities())
    arguments = ("bench", table, *PLAIN, *SHAPES, "--runs", 2, "--json")
    assert crosschip(*arguments).document["threads"] is None
    refused = crosschip(*arguments, "--threads", 1)
    assert refused.status == 1
    assert "the number of threads cannot be set on this device" in refused.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("exlain",), "there is no command 'exlain' (did you mean 'explain'?)"),
        (("ops", "--devices", "openvin"), "no device 'openvin' (did you mean 'openvino'?)"),
        (("ops", "--devices", "xla", "--property", "xal.a=1"), "(did you mean 'xla'?)"),
        (
            ("ops", "--devices", "onnxruntime", "--property", "onnxruntime.spining=1"),
            "has no property 'spining' (did you mean 'spinning'?)",
        ),
    ],
)
def test_names_that_were_meant(
    crosschip: Crosschip, arguments: tuple[str, ...], message: str
) -> None:
    outcome = crosschip(*arguments)
    assert outcome.status in (1, 2)
    assert message in outcome.err


def test_operators_in_a_precision(crosschip: Crosschip) -> None:
    arguments = ("ops", "DET", "--devices", "reference", "--json")
    (plain,) = crosschip(*arguments).document
    (half,) = crosschip(*arguments, "--precision", "float16").document
    assert plain["devices"]["reference"] == "yes"
    assert "float16" in half["devices"]["reference"]
