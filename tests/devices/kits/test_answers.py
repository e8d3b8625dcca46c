"""Stored answers of compilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from crosschip.devices.kits.toolchain.answers import Answers


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "answers"


def test_answers_are_there_for_the_next_process_of_the_same_version() -> None:
    answers = Answers("chip-1.0 (sdk 2)")
    assert answers.get("a") is None
    answers.learn("a", "")
    answers.learn("b", "no such\noperator")
    assert answers.get("a") == ""
    again = Answers("chip-1.0 (sdk 2)")
    assert (again.get("a"), again.get("b")) == ("", "no such\noperator")
    assert Answers("chip-1.1 (sdk 2)").get("a") is None


def test_lines_that_are_no_answers_are_passed_over(folder: Path) -> None:
    Answers("chip").learn("a", "why")
    (file,) = folder.iterdir()
    kept = file.read_bytes()
    file.write_bytes(b'\xff\n[1, 2]\n{"b": 1}\n["c"]\n[[\n' + kept + b'["d", "cut o')
    answers = Answers("chip")
    assert answers.get("a") == "why"
    assert [answers.get(key) for key in "bcd"] == [None] * 3


def test_a_folder_of_others_is_neither_believed_nor_written_to(folder: Path) -> None:
    Answers("chip").learn("a", "why")
    (file,) = folder.iterdir()
    before = file.read_bytes()
    folder.chmod(0o777)
    answers = Answers("chip")
    assert answers.get("a") is None
    answers.learn("b", "")
    assert answers.get("b") == ""
    assert file.read_bytes() == before


def test_where_nothing_can_be_written_this_process_knows_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path / "file"))
    answers = Answers("chip")
    answers.learn("a", "why")
    assert answers.get("a") == "why"
