"""Lists of input files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crosschip.batch_inference import list_files
from crosschip.ir import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.jpg", "a.JPG", "c.npy", "notes.md", "deep/d.png", "deep/er/e.webp"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def photos(*names: str) -> list[str]:
    return [os.path.join("photos", name) for name in names]


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        ("photos", ["a.JPG", "b.jpg", "c.npy", "deep/d.png", "deep/er/e.webp"]),
        ("photos/*.*", ["a.JPG", "b.jpg", "c.npy", "notes.md"]),
        ("photos/**/*.webp", ["deep/er/e.webp"]),
        (["photos/c.npy", "photos/*.?pg", "photos/b.jpg"], ["c.npy", "b.jpg"]),
        (Path("photos/b.jpg"), ["b.jpg"]),
        ("photos/missing.jpg", ["missing.jpg"]),
    ],
)
def test_sources(folder: Path, sources: str, names: list[str]) -> None:
    assert list_files(sources) == photos(*names)


def test_a_list_has_a_path_on_each_line(folder: Path) -> None:
    (folder / "list.txt").write_text("photos/c.npy\n\nphotos/b.jpg\nphotos/c.npy\n")
    assert list_files(["list.txt", "photos/*.JPG"]) == photos("c.npy", "b.jpg", "a.JPG")


def test_a_file_whose_name_is_a_pattern(folder: Path) -> None:
    (folder / "photos" / "[1].jpg").touch()
    assert list_files("photos/[1].jpg") == photos("[1].jpg")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("photos/*.gif", "photos/*.gif matches no file"),
        ("empty", "empty holds no picture and no .npy file"),
        ("empty.txt", "empty.txt names no file"),
        ("missing.txt", "missing.txt: cannot be read: No such file or directory"),
        ([], "there are no files to map"),
    ],
)
def test_sources_without_files(folder: Path, source: str, message: str) -> None:
    (folder / "empty").mkdir()
    (folder / "empty.txt").write_text("\n")
    with pytest.raises(InputError) as error:
        list_files(source)
    assert message in str(error.value)
