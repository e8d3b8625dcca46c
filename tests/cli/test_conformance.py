"""`crosschip conformance`."""

from __future__ import annotations

import json
from pathlib import Path
from zipfile import ZipFile

from tests.cli.conftest import Crosschip

DEFECTIVE = "tests.conformance.defects:ties_rounded_away"


def test_a_right_device(crosschip: Crosschip) -> None:
    outcome = crosschip("conformance", "reference", "--operator", "ADD", "--json")
    assert (outcome.status, outcome.err) == (0, "")
    document = outcome.document
    assert (document["device"], document["cases"]) == ("reference", document["pass"])
    assert set(document["operators"]) == {"ADD"}


def test_a_wrong_device(crosschip: Crosschip, tmp_path: Path) -> None:
    page, junit = tmp_path / "page.html", tmp_path / "junit.xml"
    outcome = crosschip(
        "conformance", DEFECTIVE, "--operator", "ROUND", "--html", page, "--junit", junit
    )
    assert outcome.status == 1
    assert "FAIL ROUND/" in outcome.out
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert junit.read_text("utf-8").startswith("<?xml")


def test_one_case(crosschip: Crosschip, tmp_path: Path) -> None:
    path = tmp_path / "case.zip"
    outcome = crosschip(
        "conformance", "reference", "--case", "ADD/0/plain", "--save", path, "--json"
    )
    assert outcome.status == 0
    assert outcome.document["verdicts"] == {"ADD/0/plain": "pass"}
    assert path.exists()


def test_a_type(crosschip: Crosschip) -> None:
    outcome = crosschip(
        "conformance", "reference", "--operator", "ADD", "--type", "int32", "--json"
    )
    assert outcome.document["operators"]["ADD"]["types"] == ["int32"]


def test_comparing(crosschip: Crosschip, tmp_path: Path) -> None:
    files: list[Path] = []
    for device in ("reference", DEFECTIVE):
        outcome = crosschip("conformance", device, "--operator", "ROUND", "--json")
        files.append(tmp_path / f"{len(files)}.json")
        files[-1].write_text(json.dumps(outcome.document))
    worse = crosschip("conformance", "--compare", *files, "--json")
    assert worse.status == 1
    assert worse.document["worse"] == worse.document["changed"]["pass -> fail"]
    better = crosschip("conformance", "--compare", *reversed(files))
    assert better.status == 0
    assert "fail -> pass" in better.out


def test_what_is_not_there_is_an_error(crosschip: Crosschip) -> None:
    for arguments, message in (
        (("no_such_device",), "no device 'no_such_device'"),
        (("reference", "--operator", "NO_SUCH"), "no such case"),
        (("reference", "--case", "ADD/0/no"), "no case 'ADD/0/no'"),
    ):
        outcome = crosschip("conformance", *arguments)
        assert outcome.status == 1
        assert message in outcome.err
    assert crosschip("conformance").status == 2


def test_random_cases_are_counted_as_the_device_takes_them(crosschip: Crosschip) -> None:
    outcome = crosschip("conformance", "onnxruntime", "--random", "30", "--type", "int64", "--json")
    document = outcome.document
    assert document["pass"] + document["fail"] == 30
    assert document["unsupported"] > 0


def test_several_operators_are_chosen(crosschip: Crosschip) -> None:
    named = ("--operator", "ABS", "--operator", "NEG")
    outcome = crosschip("conformance", "reference", "--quick", *named, "--json")
    assert set(outcome.document["operators"]) == {"ABS", "NEG"}


def test_a_fixed_case_that_fails_says_its_use(crosschip: Crosschip) -> None:
    outcome = crosschip("conformance", DEFECTIVE, "--case", "ROUND/4/plain")
    assert "the use: ROUND(input=float32[6]" in outcome.out


def test_the_models_of_a_check_are_written(crosschip: Crosschip, tmp_path: Path) -> None:
    path = tmp_path / "chain.zip"
    chosen = ("--case", "DEVICE/models/chain", "--save", path)
    assert crosschip("conformance", "reference", *chosen).status == 0
    with ZipFile(path) as archive:
        assert {"1/model.chipm", "1/inputs/x.npy", "1/outputs/y0.npy"} <= set(archive.namelist())
    refusal = crosschip("conformance", *chosen)
    assert "needs the device" in refusal.err
