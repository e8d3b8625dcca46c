"""What a machine without a network lacks: wheels of crosschip and its packages, and models."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_BYTES = 60 * 2**20
WHEELS, MODELS = "wheels", "models"

_OF_JAX = ("numpy", "scipy", "ml_dtypes")
"""Packages that JAX has itself, which would need most of the room."""

_OF_TORCH = ("onnxscript",)
"""Packages with which crosschip imports modules of PyTorch, and which PyTorch does without."""

_PLATFORMS = ("2_28", "2_27", "2_24", "2_17", "2_12", "2_5")
_LARGEST_MODEL = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Target:
    """The machine that the wheels are for.

    Attributes:
        python: the version of its Python, such as `3.12`.
        architecture: of its processor, such as `x86_64`.
    """

    python: str
    architecture: str


def pack(folder: Path, target: Target) -> Iterator[str]:
    """Write the folder anew; yield what is in it and what is not, a line each.

    Raises:
        subprocess.CalledProcessError: pip fails.
        ValueError: the wheels alone are too large.
    """
    shutil.rmtree(folder, ignore_errors=True)
    wheels, models = folder / WHEELS, folder / MODELS
    for new in (wheels, models):
        new.mkdir(parents=True)
    _pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT))
    [own] = wheels.glob("crosschip-*.whl")
    _pip("download", "--dest", str(wheels), *_options(target), str(own), *_OF_TORCH)
    for path in wheels.iterdir():
        if path.name.startswith(tuple(f"{name}-" for name in _OF_JAX)):
            path.unlink()
    size = _size(folder)
    yield f"{len(list(wheels.iterdir()))} wheels, {size / 2**20:.1f} MiB"
    if size > LIMIT_BYTES:
        raise ValueError(f"the wheels exceed {LIMIT_BYTES / 2**20:.0f} MiB")
    yield from _models(models, LIMIT_BYTES - size)
    yield f"{folder}: {_size(folder) / 2**20:.1f} MiB"


def _options(target: Target) -> list[str]:
    platforms = [f"manylinux_{each}_{target.architecture}" for each in _PLATFORMS]
    return [
        *("--only-binary=:all:", "--implementation=cp", f"--python-version={target.python}"),
        *(f"--platform={each}" for each in (*platforms, f"manylinux2014_{target.architecture}")),
    ]


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--disable-pip-version-check"]
    subprocess.run(command, check=True)


def _models(folder: Path, room: int) -> Iterator[str]:
    """Pack the corpus' models that are there, small ones first, with their answers."""
    from corpus.children import run
    from corpus.entry import Entry
    from corpus.expected import path_of, read
    from corpus.made import all_made
    from corpus.reading import inputs_of
    from gpu.models import save

    entries = [made.entry for made in all_made().values() if made.entry.file.exists()]
    missing = len(all_made()) - len(entries)
    if missing:
        yield f"{missing} models of the corpus are not made; `python -m corpus make` makes them"

    def size(entry: Entry) -> int:
        return _size(entry.file.parent)

    count = 0
    for entry in sorted(entries, key=size):
        if size(entry) > _LARGEST_MODEL or size(entry) > room:
            yield f"{entry.name} is too large: {size(entry) / 2**20:.1f} MiB"
            continue
        if _files(entry.file.parent) != [entry.file]:
            yield f"{entry.name} has several files"
            continue
        failure = (
            "" if path_of(entry).exists() else run("expected", entry.name, seconds=300).failure
        )
        if not path_of(entry).exists():
            yield f"{entry.name} has no answer: {failure}"
            continue
        known, path = read(entry), folder / f"{entry.name}.onnx"
        shutil.copyfile(entry.file, path)
        save(path.with_suffix(".npz"), inputs_of(entry), known.arrays, known.allowed(entry))
        room -= path.stat().st_size + path.with_suffix(".npz").stat().st_size
        count += 1
    yield f"{count} models"


def _files(folder: Path) -> Sequence[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))
