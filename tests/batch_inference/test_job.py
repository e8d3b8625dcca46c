"""Results in a folder: each once, in order, whatever stops a job and goes on with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.batch_inference.conftest import assert_expected, expected, load_npz, write_pictures

from crosschip.batch_inference import BatchJob
from crosschip.batch_inference.classes import Classes
from crosschip.batch_inference.result_files import Format
from crosschip.ir import InputError
from crosschip.runtime.compiled import CompiledModel

FORMATS = ("jsonl", "npy", "npz")
SETTINGS = {"model": "means 1"}


def run(compiled: CompiledModel, folder: Path, paths: list[str], **more: Any) -> list[str]:
    """Run a job to its end; return the errors."""
    with BatchJob(folder, paths, SETTINGS, **{"batch_size": 4, **more}) as job:
        job.run(compiled)
        assert job.completed == len(paths)
        return list(job.errors)


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder, but for the manifest."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "job.json"
    }


def read(folder: Path, format: str) -> list[tuple[str, dict[str, Any] | None]]:
    """The path of each line, with its outputs; `None` for an error."""
    results = []
    for line in map(json.loads, (folder / "results.jsonl").read_text().splitlines()):
        path = line.pop("file")
        outputs: dict[str, Any] | None
        if "error" in line:
            outputs = None
        elif format == "jsonl":
            outputs = line["outputs"]
        elif format == "npy":
            files = {"mean": "0-mean.npy", "ends": "1-ends.npy"}
            outputs = {name: np.load(folder / file)[line["row"]] for name, file in files.items()}
        else:
            outputs = load_npz(folder / line["arrays"])
        results.append((path, outputs))
    return results


@pytest.mark.parametrize("format", FORMATS)
def test_results(means: CompiledModel, tmp_path: Path, format: Format) -> None:
    paths = write_pictures(tmp_path / "pictures", 11)
    Path(paths[5]).write_bytes(b"no picture")
    errors = run(means, tmp_path / "out", paths, format=format)
    assert [error.partition(": ")[0] for error in errors] == [paths[5]]
    results = read(tmp_path / "out", format)
    assert [path for path, _ in results] == paths
    for path, outputs in results:
        if path == paths[5]:
            assert outputs is None
        else:
            assert outputs is not None
            assert_expected(path, outputs)
    if format == "npy":
        assert np.load(tmp_path / "out" / "1-ends.npy").shape == (10, 2, 3)


@pytest.mark.parametrize("format", FORMATS)
def test_the_best_classes(means: CompiledModel, tmp_path: Path, format: Format) -> None:
    paths = write_pictures(tmp_path / "pictures", 5)
    classes = Classes(2, ["red", "green", "blue"])
    run(means, tmp_path / "out", paths, format=format, classes=classes)
    lines = map(json.loads, (tmp_path / "out" / "results.jsonl").read_text().splitlines())
    for path, line in zip(paths, lines, strict=True):
        scores = expected(path)["mean"]
        best = np.argsort(-scores)[:2]
        assert [entry["class"] for entry in line["top"]] == best.tolist()
        assert [entry["label"] for entry in line["top"]] == [
            ("red", "green", "blue")[index] for index in best
        ]
        np.testing.assert_allclose([e["score"] for e in line["top"]], scores[best], rtol=1e-6)
        assert (
            set(line) - {"file", "top"}
            == {"jsonl": set(), "npy": {"row"}, "npz": {"arrays"}}[format]
        )


@settings(max_examples=40)
@given(data=st.data())
def test_a_job_cut_off_anywhere_ends_as_one_that_was_not(
    means: CompiledModel, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Files end at any byte, as a killed process leaves them: arrays before their lines."""
    format: Format = data.draw(st.sampled_from(FORMATS))
    count, batch_size = data.draw(st.integers(1, 14)), data.draw(st.integers(1, 6))
    bad = data.draw(st.sets(st.integers(0, count - 1), max_size=3))
    folder = tmp_path_factory.mktemp("job")
    paths = write_pictures(folder / "pictures", count)
    for index in bad:
        Path(paths[index]).write_bytes(b"no picture")
    whole, cut = folder / "whole", folder / "cut"
    arguments: dict[str, Any] = {"format": format, "batch_size": batch_size}
    errors = run(means, whole, paths, **arguments)
    assert len(errors) == len(bad)

    shutil.copytree(whole, cut)
    lines = (cut / "results.jsonl").read_bytes()
    position = round(data.draw(st.floats(0, 1)) * len(lines))
    (cut / "results.jsonl").write_bytes(lines[:position])
    complete = lines[:position].count(b"\n")
    for index, path in enumerate(sorted((cut / "arrays").glob("*.npz"))):
        if index >= complete:
            path.write_bytes(path.read_bytes()[: index % 3 * 50])
    assert run(means, cut, paths, **arguments) == errors
    assert content(cut) == content(whole)


@pytest.mark.parametrize("format", FORMATS)
def test_rows_without_lines_are_removed(
    means: CompiledModel, tmp_path: Path, format: Format
) -> None:
    """All that follow are bad, so that nothing would overwrite them."""
    paths = write_pictures(tmp_path / "pictures", 8)
    run(means, tmp_path / "out", paths, format=format)
    log = tmp_path / "out" / "results.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:4]))
    for path in paths[4:]:
        Path(path).unlink()
    assert len(run(means, tmp_path / "out", paths, format=format)) == 4
    run(means, tmp_path / "new", paths, format=format)
    assert content(tmp_path / "out") == content(tmp_path / "new")


@pytest.mark.parametrize("format", FORMATS)
def test_files_added_after_the_others_are_mapped(
    means: CompiledModel, tmp_path: Path, format: Format
) -> None:
    paths = write_pictures(tmp_path / "pictures", 11)
    run(means, tmp_path / "out", paths[:6], format=format)
    run(means, tmp_path / "out", paths, format=format)
    run(means, tmp_path / "whole", paths, format=format)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert json.loads((tmp_path / "out" / "job.json").read_text())["files"][10][0] == paths[10]


def test_what_is_not_the_same_job_is_refused(means: CompiledModel, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path / "pictures", 6)
    out = tmp_path / "out"
    run(means, out, paths)
    before = content(out)

    def message(paths: list[str], settings: dict[str, Any] = SETTINGS, **more: Any) -> str:
        with pytest.raises(InputError) as error:
            BatchJob(out, paths, settings, **{"batch_size": 4, **more})
        assert content(out) == before
        text = str(error.value)
        assert text.startswith(f"{out}: ")
        assert text.endswith("use another folder, or remove this one to begin again")
        return text

    assert "began with model means 1, not means 2;" in message(paths, {"model": "means 2"})
    assert "began with resize none, not 224;" in message(paths, {**SETTINGS, "resize": 224})
    assert "began with batch 4, not 5;" in message(paths, batch_size=5)
    assert "began with format jsonl, not npy;" in message(paths, format="npy")
    assert "began with top none, not 3;" in message(paths, classes=Classes(3))
    assert f"file 1 of the job there is {paths[0]}, not {paths[1]};" in message(paths[1:])
    assert f"file 6 of the job there is {paths[5]};" in message(paths[:5])
    Image.fromarray(np.zeros((9, 9, 3), np.uint8)).save(paths[2])
    assert f"{paths[2]} has changed since its result was written;" in message(paths)


def test_other_folders_are_refused(means: CompiledModel, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path / "pictures", 2)
    with pytest.raises(InputError, match=r"holds 0000\d\.png, but no job; name a new or an empty"):
        BatchJob(tmp_path / "pictures", paths, SETTINGS)
    with pytest.raises(InputError, match=r"results cannot be written: (Not a directory|File exi)"):
        BatchJob(paths[0], paths, SETTINGS)
    with (
        BatchJob(tmp_path / "out", paths, SETTINGS),
        pytest.raises(InputError, match="another process writes its results there"),
    ):
        BatchJob(tmp_path / "out", paths, SETTINGS)
    run(means, tmp_path / "out", paths, batch_size=16)


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        ("job.json", b"{", r"job\.json: is damaged"),
        ("results.jsonl", b'{"file":"other"}\n', r"results\.jsonl: line 1 is of another job"),
        ("0-mean.npy", b"no array", r"0-mean\.npy: is damaged"),
        ("0-mean.npy", None, r"0-mean\.npy: lacks rows that results\.jsonl lists"),
    ],
)
def test_damaged_folders_are_refused(
    means: CompiledModel, tmp_path: Path, file: str, data: bytes | None, message: str
) -> None:
    paths = write_pictures(tmp_path / "pictures", 4)
    run(means, tmp_path / "out", paths, format="npy")
    path = tmp_path / "out" / file
    path.write_bytes(path.read_bytes()[:-1] if data is None else data)
    with pytest.raises(InputError, match=message):
        run(means, tmp_path / "out", paths, format="npy")


def test_an_output_of_another_shape_stops_rows(means: CompiledModel, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path / "pictures", 3, sizes=[6])
    with BatchJob(tmp_path / "out", paths, SETTINGS, format="npy", batch_size=1) as job:
        job._arrays.add(0, paths[0], {"y": np.zeros(3, np.float32)})
        with pytest.raises(InputError, match=r"output 'y' is float32 \[4\], but .* \[3\]; the for"):
            job._arrays.add(1, paths[1], {"y": np.zeros(4, np.float32)})


def test_names_that_are_not_unicode(means: CompiledModel, tmp_path: Path) -> None:
    (picture,) = write_pictures(tmp_path / "pictures", 1)
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe9 \n.png")
    shutil.copy(picture, name)
    for _ in range(2):
        run(means, tmp_path / "out", [name])
        ((path, outputs),) = read(tmp_path / "out", "jsonl")
        assert path == name
        assert outputs is not None
        assert_expected(path, outputs)


LIMITED = """
import resource, sys
import crosschip
from crosschip.batch_inference import BatchJob, list_files

model, pictures, out, format, limit = sys.argv[1:]
with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
    with BatchJob(out, list_files(pictures), {}, batch_size=4, format=format) as job:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
        try:
            job.run(compiled)
        except crosschip.InputError as error:
            print(error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("limit", [700, 1001])
def test_a_full_disk(means_file: Path, tmp_path: Path, format: str, limit: int) -> None:
    """The limit of files' sizes stands for it: writes of a part succeed, and then none do."""
    write_pictures(tmp_path / "pictures", 40)

    def printed(out: str, limit: int) -> str:
        arguments = (means_file, tmp_path / "pictures", tmp_path / out, format, limit)
        command = [sys.executable, "-c", textwrap.dedent(LIMITED), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert printed("out", limit) == f"{tmp_path}/out: results cannot be written: File too large\n"
    assert printed("out", 2**30) == ""
    assert printed("whole", 2**30) == ""
    assert content(tmp_path / "out") == content(tmp_path / "whole")
