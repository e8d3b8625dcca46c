"""Files that users name: written whole or not at all, and nothing else is changed or waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.modelling import chain

import crosschip as cc
from crosschip.cli import _show
from crosschip.conformance.journal import Journal
from crosschip.ir import InputError
from crosschip.ops.standard.activation import Relu
from crosschip.runtime.cache.archive import export_entries
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.inputs import write_value


def save(path: Path) -> None:
    with cc.compile(chain(Relu), ["reference"], cache=False) as compiled:
        compiled.save(path)


def trace(path: Path) -> None:
    with cc.compile(chain(Relu), ["reference"], cache=False) as compiled:
        compiled.profile(runs=1, warm_up=0).write_trace(path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "compiled model": save,
    "trace": trace,
    "picture": lambda path: _show.write(path, "<svg/>"),
    "array": lambda path: write_value(path.with_suffix(""), np.zeros(2)),
    "sequence": lambda path: write_value(path.with_suffix(""), [1, 2]),
    "journal": lambda path: Journal(path, "reference", 0).close(),
    "entries": lambda path: export_entries(Cache(path.parent / "cache"), path),
}
SUFFIXES = {"array": ".npy", "sequence": ".json"}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("kind", ["a link", "a link to nothing", "a second name"])
def test_a_link_is_replaced_and_not_followed(writer: str, kind: str, tmp_path: Path) -> None:
    path, other = tmp_path / f"out{SUFFIXES.get(writer, '')}", tmp_path / "other"
    other.write_text("")
    match kind:
        case "a link":
            path.symlink_to(other)
        case "a link to nothing":
            path.symlink_to(tmp_path / "nothing")
        case "a second name":
            path.hardlink_to(other)
    WRITERS[writer](path)
    assert path.is_file()
    assert not path.is_symlink()
    assert path.stat().st_size > 0
    assert other.read_text() == ""
    assert not (tmp_path / "nothing").exists()
    assert {file.name for file in tmp_path.iterdir()} <= {path.name, "other", "cache"}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_file_stays_and_nobody_waits_for_it(
    writer: str, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / f"out{SUFFIXES.get(writer, '')}"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            path.symlink_to("/dev/full")
    before = path.lstat()
    with pytest.raises(InputError, match=r"out.*(is no file|is not a regular file)"):
        WRITERS[writer](path)
    assert path.lstat().st_ino == before.st_ino
    assert {file.name for file in tmp_path.iterdir()} <= {path.name, "cache"}


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/dev/new"])
def test_no_file_takes_the_place_of_a_device(path: str) -> None:
    reason = "is no file|is for devices; name another file"
    with pytest.raises(InputError, match=f"^{path}: .*({reason})"):
        _show.write(Path(path), "text")
    assert path != "/dev/new" or not Path(path).exists()
