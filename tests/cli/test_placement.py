"""Options of commands that say where operations go, and what `explain` prints for that."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser
from tests.cli.conftest import Crosschip
from tests.lowering.test_mixed_precision import pairs

BOTH = ("--devices", "onnxruntime,reference")
APART = ("--pin", "Relu=reference", "--pin", "Conv=onnxruntime", "--pin", "Softmax=onnxruntime")
SHAPE = ("--shape", "image=2x3x5x8")


def where(crosschip: Crosschip, model: Path, *options: object) -> dict[str, str]:
    outcome = crosschip("explain", model, *BOTH, *options, "--json")
    assert outcome.status == 0, outcome.err
    return {o["name"]: o["device"] for o in outcome.document["operations"]}


def test_explaining_with_a_partition_and_pins(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    partition = tmp_path / "partition"
    partition.write_bytes(b"# too slow there\r\nRelu\r\nSoftmax:s\r\n")
    found = where(crosschip, model, "--partition", partition, "--pin", "Flatten=reference")
    assert {name for name, device in found.items() if device == "reference"} == {
        "relu",
        "softmax",
        "flatten",
    }
    found = where(
        crosschip,
        model,
        "--partition",
        partition,
        "--max-segments",
        1,
        "--pin",
        "Relu=onnxruntime",
        "--pin",
        "Softmax=onnxruntime",
    )
    assert set(found.values()) == {"onnxruntime"}
    found = where(crosschip, model, "--pin", "Flatten=reference", "--min-segment", 9)
    assert set(found.values()) == {"reference"}


def test_the_list_of_operators_is_a_partition(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    listed = crosschip("explain", model, *BOTH, "--subgraphs")
    assert listed.status == 0
    lines = listed.out.splitlines()
    assert lines[:2] == ["subgraph clusters: 1", "digraph G {"]
    start = lines.index("subgraph operators:")
    assert lines[start - 1] == "} // end G"
    assert lines[start + 1 :] == [
        "Conv:image,w:c",
        "Relu:c:r",
        "GlobalAveragePool:r:p",
        "Flatten:p:f",
        "Add:f,shift:s",
        "Softmax:s:[bold]概率",
    ]
    partition = tmp_path / "partition"
    partition.write_text(listed.out, encoding="utf-8")
    assert set(where(crosschip, model, "--partition", partition).values()) == {"reference"}
    partition.write_text("\n".join(lines[start + 2 :]), encoding="utf-8")
    kept = where(crosschip, model, "--partition", partition)
    assert [name for name, device in kept.items() if device == "onnxruntime"] == ["conv[/b]"]


def test_each_cluster_has_a_colour(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    options = ("--pin", "Relu=reference", "--dot", tmp_path / "m.dot")
    shown = crosschip("explain", model, *BOTH, *options, "--subgraphs").out
    assert "subgraph clusters: 3" in shown
    for text in (shown, (tmp_path / "m.dot").read_text(encoding="utf-8")):
        colours = [
            part.split('"')[0] for part in text.split('fillcolor="')[1:] if part.startswith("#")
        ]
        assert len(colours) == 6
        assert len(set(colours)) == 3
        assert len(set(colours[2:])) == 1


def test_the_list_is_there_when_something_is_unsupported(
    crosschip: Crosschip, tmp_path: Path
) -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[3, 3] x) => (float[3, 3] y)
        { r = Relu(x)  i = com.microsoft.Inverse(r)  y = Tanh(i) }""")
    path = tmp_path / "inverse.onnx"
    onnx.save(proto, path)
    outcome = crosschip("explain", path, "--devices", "reference", "--subgraphs")
    assert outcome.status == 1
    assert "none of the devices runs 1" in outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "subgraph clusters: 2"
    assert lines[-3:] == ["Relu:x:r", "com.microsoft.Inverse:r:i", "Tanh:i:y"]
    assert 'label="i", style=filled, fillcolor="white"' in outcome.out


@pytest.mark.parametrize("command", ["run", "bench"])
def test_running_as_it_is_pinned(crosschip: Crosschip, model: Path, command: str) -> None:
    options = ("--no-cache", *SHAPE, "--pin", "Relu=reference", "--max-segments", 3, "--json")
    outcome = crosschip(command, model, *BOTH, *options)
    assert outcome.status == 0, outcome.err
    if command == "run":
        devices = [segment["device"] for segment in outcome.document["segments"]]
        assert devices == ["onnxruntime", "reference", "onnxruntime"]
        assert "onnxruntime runs 5, reference runs 1" in outcome.document["placement"]


@pytest.mark.parametrize(
    ("options", "status", "told"),
    [
        (("--pin", "Relu"), 2, "'Relu' is not like conv2d=openvino"),
        (("--pin", "Rel=reference"), 1, "no operator of type 'Rel'; the nearest is 'Relu'"),
        (("--pin", "Relu=gpu"), 1, "which is not among the devices: onnxruntime, reference"),
        (("--partition", "no-such-file"), 1, "no-such-file: cannot be read"),
        (("--min-segment", 0), 2, "min-segment"),
        ((*APART, "--max-segments", 2), 1, "does not go in 2 segments; the fewest found are 3"),
    ],
)
@pytest.mark.parametrize("command", ["explain", "run", "bench"])
def test_what_cannot_be_is_an_error(
    crosschip: Crosschip,
    model: Path,
    command: str,
    options: tuple[object, ...],
    status: int,
    told: str,
) -> None:
    cache = () if command == "explain" else ("--no-cache",)
    outcome = crosschip(command, model, *BOTH, *SHAPE, *cache, *options)
    assert outcome.status == status
    if status == 1:
        assert told in outcome.err


@pytest.mark.parametrize("command", ["explain", "run"])
def test_what_computes_in_float(crosschip: Crosschip, tmp_path: Path, command: str) -> None:
    path, config = tmp_path / "quantized.onnx", tmp_path / "mixed"
    onnx.save(pairs(), path)
    config.write_text("MatMul\n# the rest stays\n")
    options: tuple[object, ...] = ("--devices", "onnxruntime", "--mixed-precision", config)
    if command == "run":
        options = (*options, "--no-cache")
    outcome = crosschip(command, path, *options)
    assert outcome.status == 0, outcome.err
    if command == "explain":
        assert "in float32, by the mixed precision: mixed" in outcome.out
        found = crosschip(command, path, *options, "--json").document
        assert found["in_float"] == ["mixed"]
    config.write_text("a b:c")
    outcome = crosschip(command, path, *options)
    assert outcome.status == 1
    assert "'a b' is no operator type" in outcome.err


@pytest.mark.slow
def test_what_is_kept_in_float32(crosschip: Crosschip, tmp_path: Path) -> None:
    path, config = tmp_path / "quantized.onnx", tmp_path / "mixed"
    onnx.save(pairs(), path)
    config.write_text("MatMul\n")
    options = ("--devices", "xla", "--precision", "float16", "--mixed-precision", config)
    outcome = crosschip("explain", path, *options)
    assert outcome.status == 0, outcome.err
    assert "xla/float32 runs 1" in outcome.out
    found = crosschip("explain", path, *options, "--json").document
    (kept,) = [each for each in found["operations"] if each["device"] == "xla/float32"]
    assert "kept in float32 by line 1 of mixed_precision, 'MatMul'" in kept["reasons"]["xla"]
    assert crosschip("run", path, *options, "--no-cache").status == 0


@pytest.mark.slow  # it asks OpenVINO
def test_explaining_what_must_hold_in_a_run(crosschip: Crosschip, tmp_path: Path) -> None:
    """OpenVINO has no int64: what it makes of an input must fit, and so must sizes."""
    path = tmp_path / "model.onnx"
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        masked (int64[N, 4] mask) => (int64[N] count) <int64[1] axes = {1}>
        { count = ReduceSum <keepdims = 0> (mask, axes) }
    """
    onnx.save(parser.parse_model(text), path)
    told = crosschip("explain", path, "--devices", "openvino")
    document = crosschip("explain", path, "--devices", "openvino", "--json").document
    (condition,) = document["conditions"]
    assert (condition["device"], condition["of"]) == ("openvino", "input 'mask'")
    assert condition["low"] <= 0 < condition["high"] < 2**31
    lines = told.out.split("What devices need of each run\n")[1].splitlines()
    assert lines[0].split() == ["device", "of", "from", "to"]
    assert lines[1].split()[:3] == ["openvino", "input", "'mask'"]
    others = crosschip("explain", path, "--devices", "reference", "--json").document
    assert others["conditions"] == []


def test_the_quirks_that_devices_avoid(crosschip: Crosschip, models: Path) -> None:
    from crosschip.devices.kits.quirks import quirks_of

    path = models / "onnx" / "mobilenet_v1.onnx"
    found = crosschip("explain", path, "--devices", "openvino", "--json").document
    types = {operation["type"] for operation in found["operations"]}
    sentences = {
        (type_, line.partition(":")[0])
        for type_, lines in found["quirks"]["openvino"].items()
        for line in lines
    }
    known = quirks_of("openvino").values()
    assert sentences == {(t, each.name) for each in known for t in each.operators if t in types}
    assert sentences
