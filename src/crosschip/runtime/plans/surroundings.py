"""What is installed, as far as it bears on what a model is compiled to."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from crosschip.ir.version import VERSION

_METADATA = (".dist-info", ".egg-info", ".egg-link", ".pth")
_SETTINGS = ("CROSSCHIP_", "ORT_", "OV_", "OPENVINO", "ONEDNN_", "DNNL_", "NVIDIA_", "XLA_", "JAX_")
"""The beginnings of the names of environment variables that crosschip and engines listen to."""

_ELSEWHERE = ("CROSSCHIP_CACHE_DIR", "CROSSCHIP_CACHE_SECRET", "CROSSCHIP_CACHE_SIZE")
"""Those that say only where what is compiled is kept."""


def surroundings() -> tuple[object, ...]:
    """The version of Python, the processor's cores, settings, distributions, and our own code.

    What is installed is told by the names of the distributions' folders, which hold their versions,
    and by when they were written. A package whose folder has none beside it is being worked on: of
    that, every file is looked at.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return sys.version, sys.platform, os.cpu_count(), cores, _settings(), _installed(), _own_code()


def code_state(folder: Path) -> str:
    """A digest of the names, sizes and times of the Python files in a folder and those below."""
    digest = hashlib.sha256()
    for path, about in sorted(_files(folder)):
        digest.update(f"{path}\0{about.st_size}\0{about.st_mtime_ns}\0".encode(errors="replace"))
    return digest.hexdigest()


def _settings() -> list[tuple[str, str]]:
    return sorted(
        (name, value)
        for name, value in os.environ.items()
        if name.startswith(_SETTINGS) and name not in _ELSEWHERE
    )


def _installed() -> str:
    """A digest of the distributions' folders on the path."""
    digest = hashlib.sha256()
    for place in sys.path:
        digest.update(place.encode(errors="replace") + b"\n")
        try:
            with os.scandir(place or ".") as found:
                for name, written in sorted(_distributions(found)):
                    digest.update(f"{name}\0{written}\n".encode(errors="replace"))
        except OSError:  # a zip file, or not there
            continue
    return digest.hexdigest()


def _distributions(found: Iterator[os.DirEntry[str]]) -> Iterator[tuple[str, int]]:
    for entry in found:
        if entry.name.endswith(_METADATA):
            yield entry.name, entry.stat().st_mtime_ns


@cache
def _own_code() -> str:
    """The state of crosschip's own code, unless it has been installed from a package."""
    home = Path(__file__).parents[2]
    if (home.parent / f"crosschip-{VERSION}.dist-info").is_dir():
        return ""
    return code_state(home)


def _files(folder: Path | str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif entry.name.endswith((".py", ".so", ".toml", ".xml", ".h")):
                yield entry.path, entry.stat()
