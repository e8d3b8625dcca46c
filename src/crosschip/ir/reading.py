"""The questions that loading a model asks the file system, so that they can be asked again.

What loads a model looks at files by the functions here and by `files.DataFile`. Whoever has taken
note of the answers knows, when all are the same again, that the same model would come of them.
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
"""A path as the system takes it: to import Python's own paths takes as long as to load a model."""

State = tuple[int, int, int, int, int]
"""The device, inode, size and times of a file; no other content has the same by accident."""

Kind = Literal["file", "folder", "other", ""]
Answer = TypeVar("Answer", bound=str)


@dataclass(slots=True)
class Reading:
    """The answers of the file system.

    Attributes:
        files: the state of each file that was opened to be read, by its path.
        answers: what else was asked, and of which path, with the answer.
    """

    files: dict[str, State] = field(default_factory=dict)
    answers: dict[tuple[str, str], str] = field(default_factory=dict)


_reading: ContextVar[Reading | None] = ContextVar("reading", default=None)


@contextmanager
def noting() -> Iterator[Reading]:
    """Take note of what is asked meanwhile."""
    reading = Reading()
    token = _reading.set(reading)
    try:
        yield reading
    finally:
        _reading.reset(token)


def note_file(path: StrPath, descriptor: int) -> None:
    """Take note of a file that has been opened, if somebody takes note."""
    reading = _reading.get()
    if reading is not None:
        reading.files[_absolute(path)] = state_of(descriptor)


def state_of(descriptor: int) -> State:
    """The state of an open file."""
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def kind(path: StrPath) -> Kind:
    """What is at a path; empty if nothing is."""
    result: Kind = ""
    if os.path.exists(path):
        result = "folder" if os.path.isdir(path) else "file" if os.path.isfile(path) else "other"
    return _noted("kind", path, result)


def listed(folder: StrPath) -> list[Path]:
    """What is in a folder, sorted.

    Raises:
        OSError: it cannot be read.
    """
    # Few models are folders, and it takes long to import.
    from pathlib import Path

    paths = sorted(Path(folder).iterdir())
    names = [f"{path.name}/" if path.is_dir() else path.name for path in paths]
    _noted("listed", folder, "\n".join(names))
    return paths


def resolved(path: StrPath) -> str:
    """A path without symbolic links."""
    return _noted("resolved", path, os.path.realpath(path))


def asked_again(question: str, path: str) -> str:
    """The answer to a question of a `Reading`, as it is now.

    Raises:
        OSError: there is none any more.
    """
    with noting() as reading:
        {"kind": kind, "listed": listed, "resolved": resolved}[question](path)
    return reading.answers[question, _absolute(path)]


def _noted(question: str, path: StrPath, answer: Answer) -> Answer:
    reading = _reading.get()
    if reading is not None:
        reading.answers[question, _absolute(path)] = answer
    return answer


def _absolute(path: StrPath) -> str:
    """A path from the root, through whatever links it goes."""
    path = os.fspath(path)
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
