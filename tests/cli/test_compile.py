"""`crosschip compile`, and the commands that take what it writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import crosschip as cc

if TYPE_CHECKING:
    from tests.cli.conftest import Crosschip

DEVICES = ("reference", "onnxruntime", "openvino")


def written(crosschip: Crosschip, model: Path, folder: Path, *arguments: object) -> Path:
    """The file of a compiled model."""
    path = folder / "net.chips"
    outcome = crosschip("compile", model, "-o", path, "--no-cache", *arguments)
    assert (outcome.status, outcome.err) == (0, "")
    return path


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_compiled_is_run(
    crosschip: Crosschip, model: Path, tmp_path: Path, device: str
) -> None:
    """With sizes that are still open, which come from the inputs as always."""
    path = written(crosschip, model, tmp_path, "--devices", device)
    sizes = ("--shape", "N=2", "--shape", "H=5", "--seed", 3)
    outputs = []
    for source, more in ((model, ("--devices", device, "--no-cache")), (path, ())):
        folder = tmp_path / f"outputs of {source.suffix}"
        outcome = crosschip("run", source, *more, *sizes, "--save", folder, "--json")
        assert (outcome.status, outcome.err) == (0, "")
        report = outcome.document
        assert [segment["device"] for segment in report["segments"]] == [device]
        outputs.append([np.load(output["file"]) for output in report["outputs"]])
    assert report["cache"] == "file"
    for mine, theirs in zip(*outputs, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert "loaded in" in crosschip("run", path, *sizes).out


def test_a_file_says_what_it_needs(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "net.chips"
    report = crosschip(
        "compile", model, "-o", path, "--devices", "reference", "--no-cache", "--json"
    ).document
    assert report["file"] == str(path)
    assert report["bytes"] == path.stat().st_size
    assert [device["name"] for device in report["devices"]] == ["reference"]
    with cc.load_compiled(path, digest=report["digest"], token=report["token"]) as loaded:
        assert report["placement"] == loaded.placement.summary()
    shown = crosschip("compile", model, "-o", path, "--devices", "reference", "--no-cache").out
    for text in (str(path), "reference 0.", "runs 6", report["digest"]):
        assert text in shown


def test_a_compiled_model_is_timed(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    path = written(crosschip, model, tmp_path, "--devices", "reference")
    sizes = ("--shape", "N=2", "--shape", "H=5")
    report = crosschip("bench", path, *sizes, "--runs", 3, "--json").document
    assert report["crosschip"]["median_ms"] > 0
    assert report["against"] == {}
    assert report["threads"] is None
    assert "threads left to the engines" in crosschip("bench", path, *sizes, "--runs", 1).out


def test_a_compiled_model_is_profiled(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    path = written(crosschip, model, tmp_path, "--devices", "reference")
    sizes = ("--shape", "N=2", "--shape", "H=5")
    report = crosschip("profile", path, *sizes, "--runs", 1, "--json").document
    uncompiled = crosschip(
        "profile", model, *sizes, "--runs", 1, "--devices", "reference", "--no-cache", "--json"
    ).document
    assert [segment["device"] for segment in report["segments"]] == ["reference"]
    steps, others = ([s["operations"] for s in r["steps"]] for r in (report, uncompiled))
    assert sorted(steps) == sorted(others) != []


@pytest.mark.parametrize("command", ["run", "bench", "profile"])
def test_a_budget_holds_for_a_compiled_model(
    crosschip: Crosschip, model: Path, tmp_path: Path, command: str
) -> None:
    sizes = ("--shape", "N=2", "--shape", "H=5")
    path = written(crosschip, model, tmp_path, "--devices", "reference", *sizes)
    allowed = ("--budget", "seconds=99.5", "--budget", "tensor_bytes=1000000")
    assert crosschip(command, path, *allowed, "--json").status == 0
    outcome = crosschip(command, path, "--budget", "tensor_bytes=8")
    assert outcome.status == 1
    assert f"{path}: " in outcome.err
    assert "the budget allows tensor_bytes=8" in outcome.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--devices", "reference"],
        ["run", "--pin", "RELU=reference"],
        ["run", "--no-cache"],
        ["bench", "--against", "openvino"],
        ["bench", "--precision", "float32"],
        ["profile", "--max-segments", "2"],
    ],
    ids=" ".join,
)
def test_what_means_nothing_any_more_is_wrong_usage(
    crosschip: Crosschip, model: Path, tmp_path: Path, arguments: list[str]
) -> None:
    path = written(crosschip, model, tmp_path, "--devices", "reference")
    command, *options = arguments
    outcome = crosschip(command, path, *options)
    assert (outcome.status, outcome.out) == (2, "")
    assert options[0].removeprefix("--no-") in outcome.err
    assert "holds a compiled model, for which this means nothing" in outcome.err


@pytest.mark.parametrize("command", ["run", "bench", "profile"])
def test_threads_and_performance_are_set_for_what_is_compiled(
    crosschip: Crosschip, model: Path, tmp_path: Path, command: str
) -> None:
    sizes = ("--shape", "N=2", "--shape", "H=5")
    path = written(crosschip, model, tmp_path, "--devices", "reference", *sizes)
    settings = ("--threads", 1, "--performance", "low")
    assert crosschip(command, path, *settings, "--json").status == 0
    outcome = crosschip(command, path, "--threads", 0)
    assert outcome.status != 0
    assert "threads" in outcome.err


def test_a_damaged_file_is_an_error(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    path = written(crosschip, model, tmp_path, "--devices", "reference")
    path.write_bytes(path.read_bytes()[:-1])
    outcome = crosschip("run", path)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith(f"error: {path}: has ")


def test_a_place_that_cannot_be_written_to_is_an_error(
    crosschip: Crosschip, model: Path, tmp_path: Path
) -> None:
    outcome = crosschip(
        "compile", model, "-o", tmp_path / "no" / "net", "--devices", "reference", "--no-cache"
    )
    assert outcome.status == 1
    assert "cannot be written: No such file or directory" in outcome.err
