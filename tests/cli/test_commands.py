"""`crosschip explain`, `devices`, `cache` and `bench`."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import onnx
import pytest
from onnx import parser
from tests.cli.conftest import Crosschip
from tests.drawing.pictures import SVG, check_picture

from crosschip.cli._show import table
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import Cache

SHAPE = ("--shape", "image=2x3x5x8")


def test_explaining_in_a_document(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("explain", model, "--devices", "reference", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    report = outcome.document
    assert set(report) >= {"segments", "operations"}
    (segment,) = report["segments"]
    assert (segment["device"], segment["operations"]) == ("reference", 6)
    assert len(segment["inputs"]) == len(segment["outputs"]) == 2
    operations = report["operations"]
    assert [operation["type"] for operation in operations] == [
        "CONV_2D",
        "RELU",
        "ADAPTIVE_AVERAGE_POOL_2D",
        "FLATTEN",
        "ADD",
        "SOFTMAX",
    ]
    for operation in operations:
        assert set(operation) >= {"name", "type", "device", "reasons"}
        assert operation["device"] == "reference"
        assert operation["reasons"] == {"reference": "supported"}


def test_explaining_in_tables(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("explain", model, "--devices", "reference", *SHAPE)
    assert outcome.status == 0
    for text in ("SOFTMAX", "reference", "operations in 1 segments: reference runs 6"):
        assert text in outcome.out


def test_drawings(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    files = ("--dot", tmp_path / "m.dot", "--svg", tmp_path / "m.svg")
    outcome = crosschip("explain", model, "--devices", "reference", *files, "--json")
    assert outcome.status == 0
    dot = (tmp_path / "m.dot").read_text(encoding="utf-8")
    assert dot.startswith("digraph")
    assert "[bold]概率" in dot
    svg = ElementTree.parse(tmp_path / "m.svg")
    texts = [element.text for element in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert {"reference: 6 operations in segment 0", "CONV_2D", "[bold]概率"} <= set(texts)


def test_a_page(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    """The page is written; `--profile` adds a run to it, and means nothing without a page."""
    page, profiled = tmp_path / "m.html", tmp_path / "profiled.html"
    outcome = crosschip("explain", model, "--devices", "reference", "--html", page)
    assert (outcome.status, outcome.err) == (0, "")
    assert "ADAPTIVE_AVERAGE_POOL_2D" in page.read_text(encoding="utf-8")
    assert '"profile":null' in page.read_text(encoding="utf-8")
    devices = ("--devices", "onnxruntime,reference", "--no-cache", *SHAPE)
    outcome = crosschip("explain", model, *devices, "--html", profiled, "--profile")
    assert outcome.status == 0
    assert '"profile":{"runs":10,' in profiled.read_text(encoding="utf-8")
    assert '"device":"reference","runs":true' in profiled.read_text(encoding="utf-8")
    outcome = crosschip("explain", model, *devices, "--profile")
    assert outcome.status == 2
    assert "is for the page of --html" in outcome.err


def test_a_drawing_of_two_devices(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    """Segments have the numbers of the table, transfers are lines, and reasons are tooltips."""
    drawing = tmp_path / "m.svg"
    pinned = ("--devices", "openvino,reference", "--pin", "RELU=reference")
    outcome = crosschip("explain", model, *pinned, "--svg", drawing)
    assert outcome.status == 0
    root = check_picture(drawing.read_text(encoding="utf-8"))
    segments = [line.split()[:3] for line in outcome.out.splitlines()[2:]]
    segments = segments[: segments.index([])]
    assert len(segments) > 1
    legend = "\n".join(text.text or "" for text in root.iter(f"{SVG}text"))
    for device in ("openvino", "reference"):
        numbers = [number for number, name, _ in segments if name == device]
        count = sum(int(count) for _, name, count in segments if name == device)
        assert f"{device}: {count} operation" in legend
        assert legend.partition(f"{device}: ")[2].splitlines()[0].endswith(", ".join(numbers))
    assert any(path.get("class") == "transfer" for path in root.iter(f"{SVG}path"))
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]
    assert any("(reference, segment " in title and "reference: " in title for title in titles)


@pytest.fixture
def partly_unknown(tmp_path: Path) -> Path:
    """A model with an operation of ONNX Runtime's own between two standard ones."""
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
        g (float[3, 3] x) => (float[3, 3] y)
        { r = Relu(x)  i = com.microsoft.Inverse(r)  y = Tanh(i) }""")
    path = tmp_path / "inverse.onnx"
    onnx.save(proto, path)
    return path


def test_explaining_what_no_device_runs(
    crosschip: Crosschip, partly_unknown: Path, tmp_path: Path
) -> None:
    """The tables and drawings are there all the same, then the error of `run`."""
    page = tmp_path / "m.html"
    files = ("--dot", tmp_path / "m.dot", "--svg", tmp_path / "m.svg", "--html", page)
    outcome = crosschip("explain", partly_unknown, "--devices", "reference", *files)
    assert outcome.status == 1
    for text in ("TANH", "Inverse", "nobody", "is not a standard operator", "reference runs 2"):
        assert text in outcome.out
    assert "error: inverse: none of the devices runs 1 of its operations" in outcome.err
    assert (
        outcome.err == crosschip("run", partly_unknown, "--devices", "reference", "--no-cache").err
    )
    drawn = (tmp_path / "m.dot").read_text(encoding="utf-8")
    assert drawn.count("reference") == 2
    assert "Inverse" in drawn
    assert "Inverse" in (tmp_path / "m.svg").read_text(encoding="utf-8")
    assert '"name":"no device"' in page.read_text(encoding="utf-8")
    outcome = crosschip("explain", partly_unknown, "--devices", "reference", "--json")
    assert outcome.status == 1
    devices = {o["type"]: o["device"] for o in outcome.document["operations"]}
    assert devices == {"RELU": "reference", "onnx.com.microsoft.Inverse": None, "TANH": "reference"}


def test_explaining_what_runs_inside_branches(crosschip: Crosschip, tmp_path: Path) -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (bool c, float[3] x) => (float[3] y)
        { y = If <then_branch = t () => (float[3] a) { a = Tanh(x) },
                  else_branch = e () => (float[3] b) { b = Exp(x) }> (c) }""")
    path = tmp_path / "if.onnx"
    onnx.save(proto, path)
    outcome = crosschip("explain", path, "--devices", "reference", "--json")
    assert outcome.status == 0
    assert {o["type"] for o in outcome.document["operations"]} == {"IF", "TANH", "EXP"}
    shown = crosschip("explain", path, "--devices", "reference").out
    for text in ("IF", "TANH", "EXP"):
        assert text in shown


def test_a_drawing_that_cannot_be_written_is_an_error(crosschip: Crosschip, model: Path) -> None:
    for flag, name in (("--dot", "m"), ("--svg", "m.svg"), ("--html", "m.html")):
        outcome = crosschip("explain", model, "--devices", "reference", flag, f"/dev/null/{name}")
        assert outcome.status == 1
        assert f"error: /dev/null/{name}: cannot be written" in outcome.err


@pytest.mark.parametrize("name", ["m.png", "m", "svg"])
def test_a_drawing_of_another_format_is_refused(
    crosschip: Crosschip, model: Path, tmp_path: Path, name: str
) -> None:
    outcome = crosschip("explain", model, "--devices", "reference", "--svg", tmp_path / name)
    assert outcome.status == 2
    assert "what is written is SVG" in outcome.err
    assert not (tmp_path / name).exists()


def test_devices(crosschip: Crosschip) -> None:
    outcome = crosschip("devices", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    found = {device["name"]: device for device in outcome.document}
    assert set(found) >= {"reference", "onnxruntime", "openvino"}
    for device in found.values():
        assert set(device) >= {"name", "vendor", "kind", "version", "available", "reason"}
        assert device["available"] is (device["reason"] == "")
    assert found["reference"]["available"]
    shown = crosschip("devices").out
    for device in found.values():
        assert device["name"] in shown
        assert device["vendor"] in shown


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A cache folder with three good entries and one that is damaged."""
    cache = Cache(tmp_path / "cache")
    for i in range(3):
        cache.write(Entry(f"{i:064}", "npu", "1.0", f"model [{i}]", i), bytes(100_000))
        path = cache.folder / f"{i:064}.chip"
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))
    (cache.folder / f"{9:064}.chip").write_bytes(b"damaged")
    return cache.folder


def test_the_cache_is_listed(crosschip: Crosschip, filled: Path) -> None:
    outcome = crosschip("cache", "list", "--cache-dir", filled, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    report = outcome.document
    assert report["folder"] == str(filled)
    assert len(report["entries"]) == 4
    good = [entry for entry in report["entries"] if not entry["problem"]]
    assert [entry["model"] for entry in good] == ["model [2]", "model [1]", "model [0]"]
    assert all(entry["bytes"] > 100_000 and entry["device"] == "npu" for entry in good)
    shown = crosschip("cache", "list", "--cache-dir", filled).out
    for text in ("model [1]", "npu 1.0", "0.1", "good", "is no file", "4 entries", "2048.0 MB"):
        assert text in shown


def test_whole_models_are_listed_with_their_tokens(crosschip: Crosschip, tmp_path: Path) -> None:
    Cache(tmp_path).write(Entry("mine", "npu,gpu", "0.3", "net", 7, whole=True), b"...")
    shown = crosschip("cache", "list", "--cache-dir", tmp_path).out
    assert "token mine" in shown
    assert "npu,gpu" in shown
    (entry,) = crosschip("cache", "list", "--cache-dir", tmp_path, "--json").document["entries"]
    assert (entry["key"], entry["whole"]) == ("mine", True)


def test_the_cache_is_verified(crosschip: Crosschip, filled: Path) -> None:
    """To the last byte, which a listing does not look at."""
    path = filled / f"{1:064}.chip"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"!")
    listed = crosschip("cache", "list", "--cache-dir", filled, "--json").document["entries"]
    assert sum(bool(entry["problem"]) for entry in listed) == 1
    outcome = crosschip("cache", "verify", "--cache-dir", filled, "--json")
    assert outcome.status == 1
    assert outcome.document["good"] == 2
    problems = [entry["problem"] for entry in outcome.document["damaged"]]
    assert sorted(problems) == [
        "has damaged bytes in block 0 of part 0",
        "is no file that crosschip has saved",
    ]
    shown = crosschip("cache", "verify", "--cache-dir", filled)
    assert shown.status == 1
    for text in ("2 of 4 entries are good", "damaged bytes", "clear --damaged"):
        assert text in shown.out
    assert crosschip("cache", "clear", "--damaged", "--cache-dir", filled).status == 0
    outcome = crosschip("cache", "verify", "--cache-dir", filled)
    assert (outcome.status, outcome.err) == (0, "")
    assert "2 of 2 entries are good" in outcome.out


def test_the_cache_is_cleared(crosschip: Crosschip, filled: Path) -> None:
    def left(*arguments: object) -> tuple[int, int]:
        report = crosschip("cache", "clear", "--cache-dir", filled, *arguments, "--json").document
        return report["removed"], report["left"]

    assert left("--max-mb", "0.2") == (2, 2)
    assert left("--max-mb", "inf") == (0, 2)
    assert left("--damaged") == (0, 2)
    assert "2 entries removed, 0 left" in crosschip("cache", "clear", "--cache-dir", filled).out
    assert not list(filled.glob("*.chip"))


def test_what_killed_writers_left_is_removed(crosschip: Crosschip, filled: Path) -> None:
    (filled / ".unfinished" / "x.part").write_bytes(bytes(3 * 2**20))
    assert crosschip("cache", "list", "--cache-dir", filled, "--json").document["unfinished"] == 0
    assert not list((filled / ".unfinished").iterdir())


def test_the_path_of_the_cache_is_told(crosschip: Crosschip, tmp_path: Path) -> None:
    """Also of one that cannot be used, and nothing is made."""
    folder = tmp_path / "not there"
    assert crosschip("cache", "path", "--cache-dir", folder).out == f"{folder}\n"
    told = crosschip("cache", "path", "--json").document
    assert told["folder"] == "/dev/null/no cache in tests"
    assert told["secret"] == os.environ["CROSSCHIP_CACHE_SECRET"]
    assert not folder.exists()


def test_a_cache_goes_to_another_user(
    crosschip: Crosschip, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user with another secret imports what was exported as his own."""
    Cache(filled).write(Entry("mine", "npu", "0.3", "net", 7, whole=True), b"...")
    file, other = tmp_path / "file", tmp_path / "other"
    exported = crosschip("cache", "export", file, "--cache-dir", filled, "--json")
    assert (exported.status, exported.err) == (0, "")
    digest = exported.document["digest"]
    assert exported.document["entries"] == 4
    assert digest in crosschip("cache", "export", file, "--cache-dir", filled).out
    monkeypatch.setenv("CROSSCHIP_CACHE_SECRET", str(tmp_path / "secret"))
    wrong = crosschip("cache", "import", file, "--cache-dir", other, "--digest", "0" * 64)
    assert (wrong.status, wrong.out) == (1, "")
    assert "another file than the one that was asked for" in wrong.err
    right = crosschip("cache", "import", file, "--cache-dir", other, "--digest", digest, "--json")
    assert right.document["imported"] == 4
    listing = {listed.entry.key: listed.entry for listed in Cache(other).listing() if listed.entry}
    assert set(listing) == {"mine", *(f"{i:064}" for i in range(3))}
    assert Cache(other).read(listing[f"{1:064}"]) == bytes(100_000)


def test_an_import_of_something_else_is_an_error(crosschip: Crosschip, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"something else")
    outcome = crosschip("cache", "import", file, "--cache-dir", tmp_path / "cache")
    assert outcome.status == 1
    assert "is no file that crosschip has saved" in outcome.err


def test_names_that_cannot_be_printed_are_escaped(crosschip: Crosschip, tmp_path: Path) -> None:
    name = "net\ud800\x1b[31m\n"
    Cache(tmp_path).write(Entry("0" * 64, f"npu{name}", "1.0", name, 1), b"")
    outcome = crosschip("cache", "list", "--cache-dir", tmp_path)
    assert (outcome.status, outcome.err) == (0, "")
    assert "\x1b" not in outcome.out
    assert r"net\ud800\x1b[31m\n" in outcome.out
    (entry,) = crosschip("cache", "list", "--cache-dir", tmp_path, "--json").document["entries"]
    assert entry["model"] == name


def test_a_folder_that_is_only_read_is_not_pruned(crosschip: Crosschip, filled: Path) -> None:
    filled.chmod(0o777)
    assert len(crosschip("cache", "list", "--cache-dir", filled, "--json").document["entries"]) == 4
    (filled.parent / "file").touch()
    for command in (["clear"], ["import", filled.parent / "file"]):
        outcome = crosschip("cache", *command, "--cache-dir", filled)
        assert outcome.status == 1
        assert "error: cache folder" in outcome.err
        assert "nothing is changed" in outcome.err


def test_the_default_cache_is_listed(
    crosschip: Crosschip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "mine"))
    assert crosschip("cache", "list", "--json").document["folder"] == str(tmp_path / "mine")


def test_a_cache_that_cannot_be_used_is_an_error(crosschip: Crosschip) -> None:
    outcome = crosschip("cache", "list")
    assert outcome.status == 1
    assert "error: cache folder /dev/null/no cache in tests: cannot be written to" in outcome.err


def test_timing_against_an_engine(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip(
        "bench", model, "--devices", "onnxruntime", "--against", "onnxruntime,openvino",
        *SHAPE, "--runs", 3, "--no-cache", "--json",
    )  # fmt: skip
    assert outcome.status == 0, outcome.err
    report = outcome.document
    assert report["crosschip"]["median_ms"] > 0
    assert report["crosschip"]["p90_ms"] >= report["crosschip"]["median_ms"]
    assert set(report["against"]) == {"onnxruntime", "openvino"}
    for peer in report["against"].values():
        assert peer["ratio"] == pytest.approx(peer["median_ms"] / report["crosschip"]["median_ms"])
        assert peer["error"] < 1e-4
    assert "relative to that of the exact output" in report["error_unit"]


def test_timing_in_a_table(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("bench", model, "--devices", "reference", *SHAPE, "--runs", 2, "--no-cache")
    assert (outcome.status, outcome.err) == (0, "")
    assert "median ms" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "nosuch"], "nosuch"),
        (["--shape", "picture=1x3x4x8"], "no input 'picture'"),
        ([], "which leaves sizes open"),
    ],
)
def test_timing_what_does_not_fit_is_an_error(
    crosschip: Crosschip, model: Path, arguments: list[str], message: str
) -> None:
    shape = () if not arguments or "--shape" in arguments else SHAPE
    outcome = crosschip("bench", model, "--devices", "reference", "--no-cache", *shape, *arguments)
    assert (outcome.status, outcome.out) == (1, "")
    assert message in outcome.err


def test_a_long_name_leaves_room_for_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    table("Outputs", ("name", "shape"), [("x" * 100, "[1, 2]"), ("[/b] :x:", "[n]")])
    shown = capsys.readouterr().out
    for text in ("[1, 2]", "[/b] :x:", "[n]", "shape"):
        assert text in shown
    assert shown.count("x") == 101
