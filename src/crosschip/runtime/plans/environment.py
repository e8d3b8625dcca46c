"""The part of the environment that affects the result of compiling."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator

_METADATA = (".dist-info", ".egg-info", ".egg-link", ".pth")
_SETTINGS = ("CROSSCHIP_", "ORT_", "OV_", "OPENVINO", "ONEDNN_", "DNNL_", "NVIDIA_", "XLA_", "JAX_")
"""The prefixes of environment variables that crosschip and engines read."""

_CACHE_SETTINGS = ("CROSSCHIP_CACHE_DIR", "CROSSCHIP_CACHE_SECRET", "CROSSCHIP_CACHE_SIZE")
"""Variables that affect the location of the cache alone."""


def environment() -> tuple[object, ...]:
    """Return the version of Python, the processor's cores, settings, and the distributions.

    Distributions enter with the names of their folders, which contain versions, and the times of
    their last change.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return sys.version, sys.platform, os.cpu_count(), cores, _settings(), _distributions_digest()


def _settings() -> list[tuple[str, str]]:
    return sorted(
        (name, value)
        for name, value in os.environ.items()
        if name.startswith(_SETTINGS) and name not in _CACHE_SETTINGS
    )


def _distributions_digest() -> str:
    """Return a digest of the distributions' folders on the path."""
    digest = hashlib.sha256()
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as items:
                distributions = sorted(_distributions(items))
        except OSError:  # a zip file, or not there
            continue
        for name, written in distributions:
            digest.update(f"{folder}\0{name}\0{written}\n".encode(errors="replace"))
    return digest.hexdigest()


def _distributions(items: Iterator[os.DirEntry[str]]) -> Iterator[tuple[str, int]]:
    for item in items:
        if item.name.endswith(_METADATA):
            yield item.name, item.stat().st_mtime_ns
