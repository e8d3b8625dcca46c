"""Models are tried in processes of their own; what ends one is a result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from corpus.children import Ended
from corpus.entry import Entry

from corpus import running, speed

RIGHT = '{"verdict": "right", "apart": [0.0], "allowed": [0.001], "where": "somewhere"}'
LISTS = ["onnxruntime", "auto", "openvino"]
ENTRY = Entry("m", "test", "nowhere", Path("m.onnx"))


def test_what_follows_a_crash_is_tried_in_another_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "m.onnx").touch()
    asked: list[tuple[str, ...]] = []

    def run(module: str, name: str, *lists: str, seconds: float) -> Ended:
        asked.append(lists)
        return Ended([RIGHT], "Segmentation fault" if len(lists) > 1 else "")

    monkeypatch.setattr(running, "run", run)
    monkeypatch.setattr(running, "path_of", lambda entry: tmp_path / "m.onnx")
    monkeypatch.setattr(running, "_engine", lambda entry: {"verdict": "refused"})
    monkeypatch.setattr("corpus.entry.FOLDER", tmp_path)
    monkeypatch.setattr(running, "RESULTS", tmp_path / "results.json")
    failures = running.try_all([ENTRY], LISTS)
    assert asked == [tuple(LISTS), ("openvino",)]
    assert failures == ["m on auto: crash; Segmentation fault"]
    known = running.results()["m"]
    assert [known[devices]["verdict"] for devices in LISTS] == ["right", "crash", "right"]


@pytest.mark.parametrize(
    ("result", "line", "right"),
    [
        (
            {"verdict": "right", "apart": [0.5], "allowed": [1], "where": "here"},
            "right; here; 0.5 of 1",
            True,
        ),
        (
            {
                "verdict": "right",
                "open_verdict": "wrong",
                "open_apart": [None],
                "open_allowed": [0],
            },
            "wrong; with open sizes; infinite of 0",
            False,
        ),
        ({"verdict": "refused", "said": "no"}, "refused; no", False),
    ],
)
def test_results_are_said_in_a_line(result: dict[str, Any], line: str, right: bool) -> None:
    assert (running.said(result), running.is_right(result)) == (line, right)


@pytest.mark.parametrize(
    ("engine_ms", "ratio", "added_us", "held"),
    [
        (2.0, 0.98, 40, True),
        (2.0, 0.96, 83, False),
        (0.1, 0.95, 5, True),
        (0.1, 0.9, 10, False),
    ],
)
def test_short_runs_are_judged_by_what_is_added(
    engine_ms: float, ratio: float, added_us: float, held: bool
) -> None:
    assert speed.held({"engine_ms": engine_ms, "ratio": ratio, "added_us": added_us}) is held
