"""File system queries of loading a model, recorded so that they can be repeated.

Loaders access the file system through this module and `files.DataFile`. If all recorded queries
still have the same answers, loading again would give the same model.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeVar

from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

StrPath = str | os.PathLike[str]
"""A path as `os` accepts it; importing `pathlib` takes as long as loading a model."""

State = tuple[int, int, int, int, int]
"""Device, inode, size, modification and change time of a file, which identify its content."""

Kind = Literal["file", "folder", "other", ""]
Answer = TypeVar("Answer", bound=str)


@dataclass(slots=True)
class Reading:
    """Recorded answers of the file system.

    Attributes:
        files: the state of each file that was opened for reading, by path.
        answers: the answer to each other query, by the query's name and the path.
    """

    files: dict[str, State] = field(default_factory=dict)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def record_queries() -> Iterator[Reading]:
    """Record all queries of the `with` block."""
    reading = Reading()
    token = _reading.set(reading)
    try:
        yield reading
    finally:
        _reading.reset(token)


def note_file(path: StrPath, descriptor: int) -> None:
    """Record an opened file, if queries are recorded."""
    reading = _reading.get()
    if reading is not None:
        reading.files[_absolute(path)] = state_of(descriptor)


def state_of(descriptor: int) -> State:
    """Return the state of an open file."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def kind(path: StrPath) -> Kind:
    """Return the kind of the entry at a path; empty if there is none."""
    result: Kind = ""
    if os.path.exists(path):
        result = "folder" if os.path.isdir(path) else "file" if os.path.isfile(path) else "other"
    return _record("kind", path, result)


def list_folder(folder: StrPath) -> list[Path]:
    """Return the entries of a folder, sorted.

    Raises:
        OSError: the folder cannot be read.
    """
    # Few models are folders, and `pathlib` is slow to import.
    from pathlib import Path

    paths = sorted(Path(folder).iterdir())
    names = [f"{path.name}/" if path.is_dir() else path.name for path in paths]
    _record("listed", folder, "\n".join(names))
    return paths


def resolve_path(path: StrPath) -> str:
    """Return a path without symbolic links."""
    return _record("resolved", path, os.path.realpath(path))


def repeat_query(question: str, path: str) -> str:
    """Return the current answer to a recorded query.

    Raises:
        OSError: it cannot be answered any more.
    """
    with record_queries() as reading:
        {"kind": kind, "listed": list_folder, "resolved": resolve_path}[question](path)
    return reading.answers[question, _absolute(path)]


def _record(question: str, path: StrPath, answer: Answer) -> Answer:
    reading = _reading.get()
    if reading is not None:
        reading.answers[question, _absolute(path)] = answer
    return answer


def _absolute(path: StrPath) -> str:
    """Return an absolute path; symbolic links stay."""
    path = os.fspath(path)
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
