"""What TensorFlow Lite files say about themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.importers.tflite.sample import Writer, sample, with_labels

from crosschip.cli import run
from crosschip.importers import file_metadata

SAID = {
    "format": "TensorFlow Lite, version 3",
    "description": "written by a test",
    "minimum runtime version": "2.9.0",
    "name": "classifier",
    "documentation": "Tells cats from dogs",
    "model version": "7",
    "author": "A. Thor",
    "input picture": (
        "RGB image; of 8 x 8 pixels; normalized with mean 127.5 and standard deviation 128"
    ),
    "output probability": "files: labels.txt",
    "file labels.txt": "8 bytes: cat, dog",
}


def test_metadata_and_labels(tmp_path: Path) -> None:
    data = with_labels(sample().file())
    assert file_metadata(data) == SAID
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    assert file_metadata(path) == SAID


def test_the_command_line_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(with_labels(sample().file()))
    assert run(["info", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "normalized with mean 127.5" in shown
    assert "cat, dog" in shown


@pytest.mark.parametrize("content", [b"short", b"\x08\0\0\0M001\xff\xff\xff\x7f", b"\0" * 40])
def test_damaged_metadata_is_named_and_the_rest_is_shown(content: bytes) -> None:
    w = sample()
    w.model.metadata.clear()
    w.add_metadata("TFLITE_METADATA", content)
    said = file_metadata(w.file())
    assert said["metadata"].startswith("cannot be read: ")
    assert said["description"] == "written by a test"


def test_a_damaged_archive_is_named() -> None:
    data = bytearray(with_labels(sample().file()))
    place = data.rindex(b"PK\x01\x02")
    data[place : place + 4] = b"PK\0\0"
    assert file_metadata(bytes(data))["associated files"].startswith("cannot be read: ")


def test_a_file_that_says_nothing() -> None:
    w = Writer()
    w.model.description = None
    w.subgraph()
    x, y = w.tensor((1, 2)), w.tensor((1, 2))
    w.operator("TANH", [x], [y])
    w.finish([x], [y])
    assert file_metadata(w.file()) == {"format": "TensorFlow Lite, version 3"}
