"""`crosschip map`: real processes, interrupted and killed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.batch_inference.conftest import MEANS, assert_expected, load_npz, save, write_pictures
from tests.cli.conftest import Crosschip
from tests.modelling import close

import crosschip as cc

PLAIN = ("--devices", "onnxruntime", "--no-cache")
SCRIPT = Path(sys.executable).with_name("crosschip")
SETTINGS = ("--resize", "224", "--mean", "123.675", "--scale", "1/58")


@pytest.fixture
def means_file(tmp_path: Path) -> Path:
    return save(MEANS, tmp_path / "means.onnx")


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def test_a_folder_of_pictures(crosschip: Crosschip, means_file: Path, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path / "pictures", 21)
    command = ("map", means_file, tmp_path / "pictures" / "*.png", "--out", tmp_path / "out")
    outcome = crosschip(*command, *PLAIN, "--json")
    assert outcome.status == 0
    assert outcome.document["seconds"] > 0
    assert outcome.document | {"seconds": 0} == {
        "folder": str(tmp_path / "out"),
        "files": 21,
        "earlier": 0,
        "seconds": 0,
        "errors": [],
    }
    for path, line in zip(paths, lines(tmp_path / "out"), strict=True):
        assert line["file"] == path
        assert_expected(path, line["outputs"])
    outcome = crosschip(*command, *PLAIN)
    assert outcome.status == 0
    assert f"{tmp_path}/out: the results for 21 files, 21 of them earlier" in outcome.out


def test_results_in_the_folder_of_pictures(
    crosschip: Crosschip, means_file: Path, tmp_path: Path
) -> None:
    paths = write_pictures(tmp_path / "pictures", 3)
    out = tmp_path / "pictures" / "out"
    for _ in range(2):
        outcome = crosschip(
            "map", means_file, tmp_path / "pictures", "-o", out, "--format", "npy", *PLAIN
        )
        assert outcome.status == 0
    assert [line["file"] for line in lines(out)] == paths


def test_a_classifier(crosschip: Crosschip, models: Path, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path / "pictures", 6, sizes=[100, 300])
    file = models / "onnx" / "mobilenet_v3_small.onnx"
    (tmp_path / "labels.txt").write_text("".join(f"class {index}\n" for index in range(1000)))
    classes = ("--top", "3", "--labels", tmp_path / "labels.txt")
    outcome = crosschip(
        "map", file, tmp_path / "pictures", "-o", tmp_path / "out", *PLAIN, *SETTINGS, *classes
    )
    assert outcome.status == 0
    model = cc.Preprocess(resize=224, mean=123.675, scale=1 / 58).attach(cc.load(file))
    with cc.compile(model, "onnxruntime", cache=False) as compiled:
        for path, line in zip(paths, lines(tmp_path / "out"), strict=True):
            (scores,) = compiled(np.asarray(Image.open(path))[None])
            best = [entry["class"] for entry in line["top"]]
            assert best == scores.argsort()[::-1][:3].tolist()
            assert [entry["label"] for entry in line["top"]] == [f"class {i}" for i in best]
            actual = np.array([entry["score"] for entry in line["top"]], np.float32)
            close(actual, scores[best])


def test_a_compiled_model_and_preprocessing(
    crosschip: Crosschip, models: Path, tmp_path: Path
) -> None:
    write_pictures(tmp_path / "pictures", 5, sizes=[100, 300])
    file, chips = models / "onnx" / "mobilenet_v3_small.onnx", tmp_path / "model.chips"
    assert crosschip("compile", file, "-o", chips, *PLAIN).status == 0
    assert (
        crosschip("map", chips, tmp_path / "pictures", "-o", tmp_path / "a", *SETTINGS).status == 0
    )
    command = ("map", file, tmp_path / "pictures", "-o", tmp_path / "b", *PLAIN, *SETTINGS)
    assert crosschip(*command).status == 0
    for a, b in zip(lines(tmp_path / "a"), lines(tmp_path / "b"), strict=True):
        close(np.array(a["outputs"]["fetch_name_0"]), np.array(b["outputs"]["fetch_name_0"]))
    refused = crosschip("map", chips, tmp_path / "pictures", "-o", tmp_path / "c", *PLAIN)
    assert refused.status == 2
    assert "holds a compiled model, for which this means nothing" in refused.err


def test_bad_pictures(crosschip: Crosschip, means_file: Path, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path / "pictures", 30)
    for path in paths[8:25]:
        Path(path).write_bytes(b"no picture")
    command = ("map", means_file, tmp_path / "pictures", *PLAIN, "--batch", "4", "--out")
    skipped = crosschip(*command, tmp_path / "skip")
    assert skipped.status == 1
    assert "the results for 30 files; 17 of them have an error" in skipped.out
    assert [line["file"] for line in lines(tmp_path / "skip") if "error" in line] == paths[8:25]
    stopped = crosschip(*command, tmp_path / "stop", "--on-error", "stop")
    assert stopped.status == 1
    assert f"error: {paths[8]}: is not a picture" in stopped.err
    assert "8 of 30 files are done; the same command goes on from there\n" in stopped.err
    for path in paths[8:25]:
        Path(path).unlink()
    again = crosschip(*command, tmp_path / "stop", "--on-error", "stop")
    assert again.status == 0
    assert [line["file"] for line in lines(tmp_path / "stop")] == paths[:8] + paths[25:]


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--resize", "8"], 1, "began with resize none, not 8;"),
        (["--devices", "reference"], 1, "began with devices onnxruntime, not reference;"),
        (["--format", "npz"], 1, "began with format jsonl, not npz;"),
        (["--format", "csv"], 2, "'csv' is not one of 'jsonl', 'npy', 'npz'"),
        (["--labels", "labels.txt"], 1, "--labels names the classes of --top, which is missing"),
        (["--top", "1", "--labels", "nothing"], 1, "nothing: cannot be read: No such file"),
        (["--threads", "1", "--readers", "1", "--on-error", "stop"], 0, ""),
    ],
)
def test_other_settings(
    crosschip: Crosschip,
    means_file: Path,
    tmp_path: Path,
    options: Sequence[str],
    status: int,
    message: str,
) -> None:
    write_pictures(tmp_path / "pictures", 3)
    command = ("map", means_file, tmp_path / "pictures", "-o", tmp_path / "out", *PLAIN)
    assert crosschip(*command).status == 0
    outcome = crosschip(*command, *options)
    assert outcome.status == status
    assert message in " ".join(outcome.err.split())


def test_another_model(crosschip: Crosschip, means_file: Path, tmp_path: Path) -> None:
    write_pictures(tmp_path / "pictures", 3)
    command = ("map", means_file, tmp_path / "pictures", "-o", tmp_path / "out", *PLAIN)
    assert crosschip(*command).status == 0
    save(MEANS.replace("{0, 1}", "{1, 0}"), means_file)
    outcome = crosschip(*command)
    assert outcome.status == 1
    assert "the job there began with model means " in outcome.err


def started(*command: object) -> subprocess.Popen[bytes]:
    """A process of its own with a command line of map."""
    return subprocess.Popen(
        [SCRIPT, "map", *map(str, command), *PLAIN], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def count(folder: Path) -> int:
    log = folder / "results.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


@pytest.mark.slow
def test_an_interruption_says_how_to_go_on(means_file: Path, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path / "pictures", 3000)
    command = (means_file, tmp_path / "pictures", "-o", tmp_path / "out", "--batch", "4")
    process = started(*command)
    while not count(tmp_path / "out"):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    done = count(tmp_path / "out")
    assert 0 < done < len(paths)
    assert f"{done:,} of 3,000 files are done; the same command goes on from there" in err.decode()
    assert b"Traceback" not in err
    process = started(*command)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert [line["file"] for line in lines(tmp_path / "out")] == paths


@pytest.mark.slow
@pytest.mark.parametrize("format", ["jsonl", "npy", "npz"])
@pytest.mark.parametrize(
    ("pictures", "kills"), [(2000, 3), pytest.param(20_000, 10, marks=pytest.mark.nightly)]
)
def test_a_job_that_is_killed(
    means_file: Path, tmp_path: Path, format: str, pictures: int, kills: int
) -> None:
    """Half of the kills come while it works, half at any moment since its start."""
    generator = random.Random(pictures)
    paths = write_pictures(tmp_path / "pictures", pictures, sizes=[4, 5])
    out = tmp_path / "out"
    command = (means_file, tmp_path / "pictures", "-o", out, "--batch", "8", "--format", format)
    starts = []
    for kill in range(kills):
        starts.append(count(out))
        process = started(*command)
        if kill % 2 == 0:
            most = count(out) + generator.randrange(1, pictures // kills)
            while count(out) < most and process.poll() is None:
                time.sleep(0.002)
        time.sleep(generator.random() * (0.02 if kill % 2 == 0 else 3))
        process.kill()
        process.communicate(timeout=60)
    done = count(out)
    print(f"{kills} kills after {[*starts[1:], done]} of {pictures} results")
    process = started(*command)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    results = lines(out)
    assert [line["file"] for line in results] == paths
    assert starts[1] < pictures
    if format == "npy":
        means, ends = np.load(out / "0-mean.npy"), np.load(out / "1-ends.npy")
        assert [line["row"] for line in results] == [*range(pictures)]
        assert len(means) == len(ends) == pictures
        outputs = [{"mean": means[row], "ends": ends[row]} for row in range(pictures)]
    elif format == "npz":
        assert sorted(p.name for p in out.iterdir()) == ["arrays", "job.json", "results.jsonl"]
        assert len([*(out / "arrays").iterdir()]) == pictures
        outputs = [load_npz(out / line["arrays"]) for line in results]
    else:
        outputs = [line["outputs"] for line in results]
    for path, each in zip(paths, outputs, strict=True):
        assert_expected(path, each)
