"""What is installed, as far as it bears on what a model is compiled to."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator

_METADATA = (".dist-info", ".egg-info", ".egg-link", ".pth")
_SETTINGS = ("CROSSCHIP_", "ORT_", "OV_", "OPENVINO", "ONEDNN_", "DNNL_", "NVIDIA_", "XLA_", "JAX_")
"""The beginnings of the names of environment variables that crosschip and engines listen to."""

_ELSEWHERE = ("CROSSCHIP_CACHE_DIR", "CROSSCHIP_CACHE_SECRET", "CROSSCHIP_CACHE_SIZE")
"""Those that say only where what is compiled is kept."""


def environment() -> tuple[object, ...]:
    """The version of Python, the processor's cores, settings, and the distributions.

    What is installed is told by the names of the distributions' folders, which hold their versions,
    and by when they were written.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return sys.version, sys.platform, os.cpu_count(), cores, _settings(), _installed()


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
        try:
            with os.scandir(place or ".") as found:
                distributions = sorted(_distributions(found))
        except OSError:  # a zip file, or not there
            continue
        for name, written in distributions:
            digest.update(f"{place}\0{name}\0{written}\n".encode(errors="replace"))
    return digest.hexdigest()


def _distributions(found: Iterator[os.DirEntry[str]]) -> Iterator[tuple[str, int]]:
    for entry in found:
        if entry.name.endswith(_METADATA):
            yield entry.name, entry.stat().st_mtime_ns
