"""`crosschip profile`: tables, one document, a trace."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.cli.conftest import Crosschip

PLAIN = ("--devices", "reference", "--no-cache", "--input", "image=1x3x4x8")


def test_the_document_sums_up(crosschip: Crosschip, model: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    outcome = crosschip("profile", model, *PLAIN, "--runs", 3, "--trace", trace, "--json")
    assert (outcome.status, outcome.err) == (0, "")
    told = outcome.document
    parts = sum(step["ms"] for step in told["steps"]) + sum(told["besides"].values())
    assert math.isclose(parts, told["ms"], rel_tol=1e-9)
    assert math.isclose(sum(told["run_ms"]) / 3, told["ms"], rel_tol=1e-9)
    assert (told["runs"], told["trace"]) == (3, str(trace))
    origins = {origin["type"] for step in told["steps"] for origin in step["origins"]}
    assert {"Conv", "Relu", "Softmax"} <= origins
    events = json.loads(trace.read_text("ascii"))["traceEvents"]
    assert sum(event.get("cat") == "run" for event in events) == 3


def test_the_tables_name_what_there_is(crosschip: Crosschip, model: Path) -> None:
    outcome = crosschip("profile", model, *PLAIN, "--runs", 1, "--top", 2)
    assert outcome.status == 0
    lines = outcome.out.splitlines()
    for title in ("Segments", "Operators", "Besides"):
        assert title in lines
    (title,) = (line for line in lines if line.startswith("Steps: 2 of "))
    first = lines.index(title) + 1
    assert lines[first].split()[:3] == ["operation", "operator", "step"]
    assert lines[first + 3] == "", "two steps, and no more"
    assert "a run takes " in lines[-1]
    assert "[bold]概率" in crosschip("profile", model, *PLAIN, "--top", 0).out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--runs", 0), 2, "--runs"),
        (("--trace", "/nowhere/trace.json"), 1, "/nowhere/trace.json: cannot be written: "),
        (("--input", "imag=1x3x4x8"), 1, "no input 'imag' (did you mean 'image'?)"),
        (("--input", "image="), 2, "is not like x=image.npy or x=1x3x48x320"),
        (("--performance", "hihg"), 1, "(did you mean 'high'?)"),
    ],
)
def test_what_is_wrong_is_told(
    crosschip: Crosschip, model: Path, arguments: tuple[object, ...], status: int, message: str
) -> None:
    outcome = crosschip("profile", model, *PLAIN, *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert message in outcome.err
