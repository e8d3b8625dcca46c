"""`crosschip capi`: C libraries, and programs for them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Crosschip

NEEDS_COMPILER = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler, cc")


@NEEDS_COMPILER
def test_building(crosschip: Crosschip, tmp_path: Path) -> None:
    outcome = crosschip("capi", "build", "--out", tmp_path, "--json")
    assert outcome.status == 0, outcome.err
    (built,) = outcome.document
    assert built["library"] == str(tmp_path / "lib" / "libnnadapter.so")
    assert {Path(path).name for path in built["headers"]} == {"nnadapter.h", "crosschip.h"}
    paths = [built["library"], built["pkg-config"], *built["headers"]]
    assert all(Path(path).is_file() for path in paths)
    plain = crosschip("capi", "build", "--out", tmp_path).out
    assert plain.splitlines() == [
        f"wrote {path}" for path in (built["library"], *built["headers"], built["pkg-config"])
    ]


def test_building_without_a_compiler(
    crosschip: Crosschip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = crosschip("capi", "build", "--out", tmp_path / "out")
    assert outcome.status == 1
    assert "there is no C compiler, cc; install one" in outcome.err


def test_building_without_cffi(
    crosschip: Crosschip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("building", "source"):
        monkeypatch.delitem(sys.modules, f"crosschip.apis.c.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "cffi", None)
    outcome = crosschip("capi", "build", "--out", tmp_path)
    assert outcome.status == 1
    assert "need cffi, which is not installed; pip install crosschip[native]" in outcome.err


def test_a_program(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    outcome = crosschip("capi", "program", model, "--out", tmp_path / "new", "--json")
    assert outcome.status == 0, outcome.err
    source, weights = (Path(outcome.document[key]) for key in ("source", "weights"))
    assert source.parent == weights.parent == tmp_path / "new"
    assert source.suffix == ".c"
    assert "NNADAPTER_CONV_2D" in source.read_text("utf-8")
    assert weights.stat().st_size > 0
