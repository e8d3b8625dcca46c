"""Record of a generated project, stored as `generated.json`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

from crosschip.ir import InputError
from crosschip.opdef.definitions import OpDefCollection
from crosschip.opdef.documents import parse, write
from crosschip.opdef.generation.project import Project, Target
from crosschip.opdef.problems import OpDefError

NAME = "generated.json"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Record of the last generation.

    Attributes:
        format: the version of the record's format.
        package: the name of the package in documents.
        target: the language of the operators.
        backends: the requested backends.
        operators: the generated operators.
        document: the definitions as canonical document.
        files: the hexadecimal SHA-256 of each generated file, by path.
        operator_of_file: the operator of a file, by path.
    """

    format: Literal[1]
    package: str
    target: Target
    backends: list[str]
    operators: list[str]
    document: str
    files: dict[str, str]
    operator_of_file: dict[str, str]

    @property
    def collection(self) -> OpDefCollection:
        """The definitions."""
        return parse(self.document.encode(), NAME).collection

    def encoded(self) -> bytes:
        """Return the record as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def digest(content: bytes) -> str:
    """Return the hexadecimal SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def record_of(project: Project, before: Record | None, orphans: Collection[str]) -> Record:
    """Return the record of a generated project.

    Args:
        project: the project.
        before: the previous record.
        orphans: the edited files that are no longer generated.
    """
    files = {path: digest(content) for path, content in project.files.items()}
    operator_of_file = dict(project.operator_of_file)
    if before is not None:
        files |= {path: before.files[path] for path in orphans}
        operator_of_file |= {
            path: before.operator_of_file[path]
            for path in orphans
            if path in before.operator_of_file
        }
    return Record(
        format=1,
        package=project.collection.package_name,
        target=project.target,
        backends=[backend.name for backend in project.backends],
        operators=project.operators,
        document=write(project.collection).decode(),
        files=dict(sorted(files.items())),
        operator_of_file=dict(sorted(operator_of_file.items())),
    )


def record_in(folder: Path) -> Record | None:
    """Read the record of a project's folder; `None` if the folder is missing or empty.

    Raises:
        InputError: the folder was not generated, or its record cannot be read.
    """
    path = folder / NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        if folder.is_dir() and any(folder.iterdir()):
            raise InputError(
                f"{folder}: is there already, and was not generated: it has no {NAME}; choose "
                "another --output"
            ) from None
        return None
    except NotADirectoryError:
        raise InputError(f"{folder}: is there already, and is no folder") from None
    try:
        record = msgspec.json.decode(content, type=Record)
        _check(record)
        return record
    except (msgspec.MsgspecError, OpDefError, ValueError) as error:
        raise InputError(
            f"{path}: is not the record of a generated project: {error}; put it back, or generate "
            "into another folder"
        ) from None


def _check(record: Record) -> None:
    """Raise `ValueError` or `OpDefError` for paths outside the folder or an invalid document."""
    for path in record.files:
        parts = PurePosixPath(path).parts
        if not parts or ".." in parts or path.startswith("/") or "\\" in path or ":" in path:
            raise ValueError(f"{path!r} is no file of the project")
    parse(record.document.encode(), NAME)
