"""The folders where crosschip keeps what it can make again, and what it cannot."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """`CROSSCHIP_CACHE_DIR`, or the platform's folder for caches."""
    configured = os.environ.get("CROSSCHIP_CACHE_DIR")
    if configured:
        return Path(configured)
    return _of_linux("XDG_CACHE_HOME", "~/.cache") or _platforms("user_cache_path")


def data_folder() -> Path:
    """The platform's folder for the user's data."""
    return _of_linux("XDG_DATA_HOME", "~/.local/share") or _platforms("user_data_path")


def _of_linux(variable: str, usual: str) -> Path | None:
    """A folder on Linux, where its rule is shorter than importing the library takes; else `None`.

    Source: https://specifications.freedesktop.org/basedir-spec/latest
    """
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ:
        return None
    given = os.environ.get(variable, "")
    return Path(given if given.strip() else os.path.expanduser(usual)) / "crosschip"


def _platforms(which: str) -> Path:
    import platformdirs

    found: Path = getattr(platformdirs, which)("crosschip")
    return found
