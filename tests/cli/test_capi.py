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
    names = [Path(built["library"]).name for built in outcome.document]
    core, runtime = "libneural_network_core.so", "libneural_network_runtime.so"
    assert names == ["libnnadapter.so", core, runtime]
    written = [
        path
        for built in outcome.document
        for path in (built["library"], *built["headers"], built["pkg-config"])
    ]
    assert all(Path(path).is_file() for path in written)
    include = tmp_path / "include"
    headers = {path for path in map(Path, written) if path.suffix == ".h"}
    assert {path.parent for path in headers} == {include, include / "neural_network_runtime"}
    plain = crosschip("capi", "build", "--out", tmp_path).out
    assert plain.splitlines() == [f"wrote {path}" for path in written]


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
    assert 'need cffi, which is not installed; pip install "crosschip[native]"' in outcome.err


@pytest.mark.parametrize(
    ("options", "code"),
    [((), "NNADAPTER_CONV_2D"), (("--interface", "nnrt"), "OH_NN_OPS_CONV2D")],
    ids=["nnadapter", "nnrt"],
)
def test_a_program(
    crosschip: Crosschip, model: Path, tmp_path: Path, options: tuple[str, ...], code: str
) -> None:
    outcome = crosschip("capi", "program", model, *options, "--out", tmp_path / "new", "--json")
    assert outcome.status == 0, outcome.err
    source, weights = (Path(outcome.document[key]) for key in ("source", "weights"))
    assert source.parent == weights.parent == tmp_path / "new"
    assert source.suffix == ".c"
    assert code in source.read_text("utf-8")
    assert weights.stat().st_size > 0
