"""Writing of projects: edited files are preserved, and a failure leaves no partial project."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from crosschip.ir import InputError
from crosschip.opdef.generation.planner import DEFINITIONS
from crosschip.opdef.generation.project import Project
from crosschip.opdef.generation.record import NAME, Record, digest, record_in, record_of

_LONGEST = 100
"""The number of characters of a folder's name in the temporary folder's name."""


class State(StrEnum):
    """State of a file after generation."""

    NEW = "new"
    RENEWED = "renewed"
    """Unedited, and regenerated with other content."""
    SAME = "same"
    MODIFIED = "kept"
    """Edited, or not generated: preserved."""
    REMOVED = "removed"
    """Unedited and no longer generated: deleted."""
    LEFT = "left"
    """Edited and no longer generated: preserved."""


@dataclass(frozen=True)
class Comparison:
    """Project to write, compared with the existing folder.

    Attributes:
        project: the project.
        folder: the folder of the project.
        record: the record of the last generation; `None` if there is none.
        states: the state of each file, by path.
        outdated: the edited files whose generated content has changed.
    """

    project: Project
    folder: Path
    record: Record | None
    states: Mapping[str, State] = field(default_factory=dict)
    outdated: frozenset[str] = frozenset()


def compare(project: Project, output: Path) -> Comparison:
    """Compare a project with the existing folder.

    Raises:
        InputError: the folder is something else or cannot be read.
    """
    folder = output / project.name
    try:
        record = record_in(folder)
        if record is None:
            return Comparison(project, folder, None, dict.fromkeys(project.files, State.NEW))
        _check(project, folder, record)
        paths = dict.fromkeys((*project.files, *record.files))
        states = {path: _state(project, folder, record, path) for path in paths}
    except OSError as error:
        where = error.filename or folder
        raise InputError(f"{where}: cannot be read: {error.strerror}") from None
    outdated = [
        path
        for path, state in states.items()
        if state is State.MODIFIED and record.files.get(path) != digest(project.files[path])
    ]
    return Comparison(project, folder, record, states, frozenset(outdated))


def _check(project: Project, folder: Path, record: Record) -> None:
    """Raise an `InputError` rather than overwrite another project or edited definitions."""
    title = project.collection.package_name
    if record.package != title:
        raise InputError(
            f"{folder}: is the project of the package {record.package!r}; choose another --output "
            f"for {title!r}"
        )
    if record.target is not project.target:
        raise InputError(
            f"{folder}: was generated with --target {record.target}; choose another --output for "
            f"--target {project.target}"
        )
    path = f"src/{project.name}/{DEFINITIONS}"
    if _state(project, folder, record, path) is State.MODIFIED:
        raise InputError(
            f"{folder / path}: has been edited, and says something else than what is read; "
            f"generate from it, or delete it"
        )


def _state(project: Project, folder: Path, record: Record, path: str) -> State:
    try:
        current = digest((folder / path).read_bytes())
    except FileNotFoundError:
        return State.NEW if path in project.files else State.REMOVED
    is_generated = current == record.files.get(path)
    if path not in project.files:
        return State.REMOVED if is_generated else State.LEFT
    if current == digest(project.files[path]):
        return State.SAME
    return State.RENEWED if is_generated else State.MODIFIED


def write(comparison: Comparison) -> None:
    """Write a project to a temporary folder, then move it into place.

    Raises:
        InputError: the project cannot be written.
    """
    folder = comparison.folder
    is_first = not folder.parent.exists()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged = Path(tempfile.mkdtemp(prefix=f".{folder.name[:_LONGEST]}-", dir=folder.parent))
        try:
            _stage(comparison, staged)
            _move_into_place(comparison, staged)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    except OSError as error:
        if is_first:
            with suppress(OSError):
                folder.parent.rmdir()
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None


def _stage(comparison: Comparison, staged: Path) -> None:
    """Write new and changed files, and the record, to a temporary folder."""
    project, states = comparison.project, comparison.states
    for path, state in states.items():
        if state in (State.NEW, State.RENEWED):
            target = staged / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(project.files[path])
    orphans = [path for path, state in states.items() if state is State.LEFT]
    (staged / NAME).write_bytes(record_of(project, comparison.record, orphans).encoded())


def _move_into_place(comparison: Comparison, staged: Path) -> None:
    """Move the staged files into place, the record last so that a failure can be repeated."""
    folder = comparison.folder
    if comparison.record is None:
        with suppress(FileNotFoundError):
            folder.rmdir()  # it is empty
        staged.chmod(0o777 & ~_umask())
        staged.rename(folder)
        return
    for path, state in comparison.states.items():
        target = folder / path
        if state in (State.NEW, State.RENEWED):
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(staged / path, target)
        elif state is State.REMOVED:
            target.unlink(missing_ok=True)
            with suppress(OSError):
                target.parent.rmdir()  # if nothing else is in it
    os.replace(staged / NAME, folder / NAME)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
